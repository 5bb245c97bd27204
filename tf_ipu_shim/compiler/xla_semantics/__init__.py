"""Rewrites after which XLA programs have the results of TensorFlow's kernels."""
