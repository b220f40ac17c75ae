"""What a run found: tables, claims with their verdicts, figures."""
