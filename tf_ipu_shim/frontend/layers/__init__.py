"""Base classes of the IPU Keras layers, and the dense layer with a float8 kernel."""
