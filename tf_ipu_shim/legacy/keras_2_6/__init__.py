"""Restores Keras 2.6 behaviour on the installed Keras 2."""
