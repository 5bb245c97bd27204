"""`ipu_tensorflow_addons.keras`. Its modules load when asked for."""
