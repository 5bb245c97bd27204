"""`tensorflow.contrib` of TensorFlow 1.15: where each name is today, and what is here in its place."""
