"""The inverse Hessian attack (Suri et al. 2024): theory, study, exhibits."""
