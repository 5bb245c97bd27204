"""`tensorflow.python.ipu.keras`: Keras for IPUs before there was `keras.ipu`. Its modules load when asked for."""
