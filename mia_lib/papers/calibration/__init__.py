"""Difficulty calibration (Watson et al. 2022): measurements, study, exhibits."""
