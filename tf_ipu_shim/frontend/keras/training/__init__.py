"""Keras' `fit`, `evaluate` and `predict` on IPUs: data, compiled programs, execution, results."""
