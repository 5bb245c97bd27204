"""Finds Keras 2 modules under their names in Keras 2.6 and earlier."""
