"""Restores names, signatures and methods that TensorFlow had in 1.15 to 2.6."""
