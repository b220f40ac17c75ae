"""Bayes-optimal membership inference (Sablayrolles et al. 2019): theory, study, exhibits."""

CLASS_RUN = "mia run bayes -p gaussian_dimension 500"  # with something to predict
