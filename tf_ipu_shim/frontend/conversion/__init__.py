"""Rewrites SavedModel graphs for IPUs: shared code of the `ipu_tensorflow_addons.saved_model_tool` converters."""
