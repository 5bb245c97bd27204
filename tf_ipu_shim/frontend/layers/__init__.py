"""Base classes and shared code of the IPU Keras layers."""
