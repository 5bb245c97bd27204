"""`tensorflow.contrib`: cells, tables, metrics, optimizers and seq2seq, computed."""
