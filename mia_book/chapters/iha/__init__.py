"""The inverse Hessian attack (Suri et al. 2024): theory, study, exhibits."""

CLASS_RUN = "mia run iha -p models 20"  # with something to predict
