"""Audit your own model: what the chapter runs, draws and judges."""

CLASS_RUN = "mia run audit -p share 0.05"  # with something to predict
