"""`ipu_tensorflow_addons.v1.optimizers`: a module that holds nothing in any SDK."""
