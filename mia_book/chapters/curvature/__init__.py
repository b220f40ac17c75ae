"""Input loss curvature (Ravikumar et al. 2024): theory, study, exhibits."""

CLASS_RUN = "mia run curvature -p references 8"  # with something to predict
