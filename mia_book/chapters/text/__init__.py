"""Language models: measurements, study, exhibits."""

CLASS_RUN = "mia run text -p counts 2,14"  # with something to predict
