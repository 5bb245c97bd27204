"""Recurrent layers of Graphcore's ops, as loops that XLA compiles and TensorFlow differentiates."""
