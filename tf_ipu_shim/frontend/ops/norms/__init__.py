"""Group normalisation: its arithmetic, and the steps that `gen_popnn_ops` has."""
