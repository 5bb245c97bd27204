"""`tensorflow.python.ipu.eager`: gradient tapes."""
