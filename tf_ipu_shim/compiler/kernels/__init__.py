"""Runs programs by TensorFlow's own kernels instead of XLA launches (execution mode `kernels`)."""
