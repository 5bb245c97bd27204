"""Rewrites that give XLA programs the results of TensorFlow's kernels."""
