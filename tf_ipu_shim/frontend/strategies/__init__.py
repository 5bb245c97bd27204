"""`tf.distribute` strategies that run each function as one IPU program, in one process or several."""
