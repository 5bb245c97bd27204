"""`ipu_tensorflow_addons.optimizers` of TensorFlow 1: a module that holds nothing in any SDK."""
