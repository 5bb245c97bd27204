"""Rewrites that give XLA programs the results of TensorFlow's kernels, and the ops for which there is none."""
