"""Supports scripts for TensorFlow 1.15 to 2.6 and older SDKs: their names, Keras behaviour, contrib and estimators.

Nothing outside imports it except through `activation`, and `names.activation` for the part that precedes TensorFlow.
"""
