"""`tensorflow.contrib` of TensorFlow 1.15: where each name is now, or its replacement here."""
