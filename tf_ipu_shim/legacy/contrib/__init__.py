"""`tensorflow.contrib`: the parts that are implemented here (cells, tables, metrics, optimizers, seq2seq)."""
