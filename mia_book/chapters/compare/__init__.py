"""All attacks of the library on the same targets, records and references."""

CLASS_RUN = "mia run compare -p targets 8"  # with something to predict
