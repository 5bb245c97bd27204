"""`ipu_tensorflow_addons`: layers and optimizers for IPUs. Its modules load when asked for."""
