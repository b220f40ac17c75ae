"""Findings of a run: tables, claims with their verdicts, figures."""
