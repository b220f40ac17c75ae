"""One folder for each paper: its theory, its notebook's study, and the exhibits it shows."""
