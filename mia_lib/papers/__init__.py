"""One folder a paper: what its theory says, the study that its notebook runs, and the exhibits that it shows."""
