"""`tensorflow.python.ipu.data`: the package of Graphcore's dataset functions."""
