"""Which layer of a model is in which pipeline stage."""
