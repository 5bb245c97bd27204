"""Exports for TensorFlow Serving: a SavedModel of stock ops with one call annotated as an IPU program."""
