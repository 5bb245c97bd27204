"""Wrappers of `tf.compat.v1.train` optimizers."""
