"""Input loss curvature (Ravikumar et al. 2024): theory, study, exhibits."""
