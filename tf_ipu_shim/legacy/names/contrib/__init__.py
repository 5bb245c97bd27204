"""Finds the names of TensorFlow 1.15's `tensorflow.contrib` where they are now, and reimplements some removed ones."""
