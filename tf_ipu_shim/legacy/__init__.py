"""What exists only for dead names: of TensorFlow 1.15 to 2.6, its Keras and contrib, and of Graphcore's older SDKs.

Nothing outside imports it except through `activation`, and `names.activation` for what comes before TensorFlow.
"""
