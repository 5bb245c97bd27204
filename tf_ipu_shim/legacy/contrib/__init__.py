"""`tensorflow.contrib`: the parts with their own implementation (cells, tables, metrics, optimizers, seq2seq)."""
