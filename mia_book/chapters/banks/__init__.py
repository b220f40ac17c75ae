"""Banks of models that many chapters attack."""
