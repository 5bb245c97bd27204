"""Keras models created in the scope of an `IPUStrategy`: construction, extensions, compiled programs."""
