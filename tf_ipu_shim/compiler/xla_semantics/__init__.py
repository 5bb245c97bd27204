"""Makes XLA programs compute the same results as TensorFlow's kernels."""
