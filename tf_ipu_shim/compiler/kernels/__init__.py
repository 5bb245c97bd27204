"""Execution of programs by TensorFlow's own kernels instead of XLA launches."""
