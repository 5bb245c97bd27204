"""Compatibility with old names: TensorFlow 1.15 to 2.6, its Keras and contrib, and Graphcore's older SDKs.

Nothing outside imports it except through `activation`, and `names.activation` for the part that precedes TensorFlow.
"""
