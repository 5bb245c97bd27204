"""Assignment of a model's layers to pipeline stages."""
