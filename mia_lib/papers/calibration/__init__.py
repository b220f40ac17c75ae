"""Difficulty calibration (Watson et al. 2022): theory, study, exhibits."""
