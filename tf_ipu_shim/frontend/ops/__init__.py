"""One implementation of each IPU op, re-exported by Graphcore's modules of every SDK release."""
