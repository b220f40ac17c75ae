"""Quantile regression (Bertran et al. 2023): theory, study, exhibits."""
