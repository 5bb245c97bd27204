"""`ipu_tensorflow_addons.v1`. Its modules load when asked for."""
