"""`fit`, `evaluate` and `predict`: their data, programs, runs and results."""
