"""Graphs of SavedModels rewritten for IPUs: what the converters of `ipu_tensorflow_addons.saved_model_tool` share."""
