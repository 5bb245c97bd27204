"""`tf.distribute` strategies: functions that run as one program each, in one process or several."""
