"""Language models: measurements, study, exhibits."""
