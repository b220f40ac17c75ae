"""Recorded runs: what state each is in, and how they are made."""
