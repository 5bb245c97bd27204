"""Makes XLA programs return the results of TensorFlow's kernels or of IPUs, and adds users' Poplar ops to them."""
