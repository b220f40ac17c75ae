"""Grids of runs, and one page of what they found."""
