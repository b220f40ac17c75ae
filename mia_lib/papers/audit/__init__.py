"""Audit your own model: what the chapter runs, draws and judges."""
