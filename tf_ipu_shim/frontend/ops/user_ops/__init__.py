"""Custom ops of users' shared libraries: host functions, Poplar graphs, and TensorFlow functions that replace them."""
