"""`tensorflow.python.ipu.data.ops`."""
