"""Quantile regression (Bertran et al. 2023): theory, study, exhibits."""

CLASS_RUN = "mia run quantile -p counts 2,8"  # with something to predict
