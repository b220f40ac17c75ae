"""All attacks of the library on the same targets, records and references."""
