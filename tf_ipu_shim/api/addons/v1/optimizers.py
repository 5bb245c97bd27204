"""`ipu_tensorflow_addons.v1.optimizers`: an empty module in every SDK."""
