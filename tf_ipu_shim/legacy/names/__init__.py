"""Import aliases for module and attribute names that TensorFlow, Keras, NumPy and Python have moved or removed."""
