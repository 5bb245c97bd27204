"""Passes over whole functions that hold for XLA and for kernels."""
