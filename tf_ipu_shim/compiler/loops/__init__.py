"""Loops: chunks of iterations, variables and counters of their own, gradients that they accumulate, pipelines."""
