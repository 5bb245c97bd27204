"""Modules of Keras 2.6 and before, made of the Keras 2 that is installed."""
