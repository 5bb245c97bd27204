"""One implementation of each op; Graphcore's modules, of any release, give them out."""
