"""Group normalization: its arithmetic, and the ops of `gen_popnn_ops`."""
