"""Compiles loops: chunks of iterations, counters, accumulated gradients and pipelines."""
