"""Quantile regression (Bertran et al. 2023): a threshold for each record, without references."""

from mia_lib.attacks.quantile.thresholds import (
    GaussianQuantile,
    PinballQuantile,
    gaussian_position,
    gaussian_thresholds,
    marginal,
    pinball_position,
    pinball_thresholds,
)

__all__ = [
    "GaussianQuantile",
    "PinballQuantile",
    "gaussian_position",
    "gaussian_thresholds",
    "marginal",
    "pinball_position",
    "pinball_thresholds",
]
