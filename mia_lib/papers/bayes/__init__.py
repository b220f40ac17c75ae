"""Bayes-optimal membership inference (Sablayrolles et al. 2019): theory, study, exhibits."""
