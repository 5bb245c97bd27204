"""`ipu_tensorflow_addons.optimizers` of TensorFlow 1: an empty module in every SDK."""
