"""`tensorflow.python.ipu.data.ops`: the package of `dataset_ops`."""
