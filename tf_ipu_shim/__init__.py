"""Emulates Graphcore's TensorFlow for IPUs on stock `tensorflow-cpu`."""
