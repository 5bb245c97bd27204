"""`tensorflow.python.ipu.ops.experimental`: the package of casts to custom floating-point formats."""
