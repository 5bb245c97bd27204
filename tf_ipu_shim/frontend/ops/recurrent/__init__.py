"""Graphcore's recurrent layers as loops that XLA compiles and TensorFlow differentiates."""
