"""Execution by TensorFlow's own kernels instead of XLA launches."""
