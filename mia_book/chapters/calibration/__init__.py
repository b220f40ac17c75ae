"""Difficulty calibration (Watson et al. 2022): measurements, study, exhibits."""

CLASS_RUN = "mia run calibration -p setting_references 2,8,30"  # with something to predict
