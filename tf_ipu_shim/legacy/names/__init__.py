"""Names of modules and attributes that TensorFlow, Keras, NumPy and Python had, where they are today."""
