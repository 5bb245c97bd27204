"""Graphcore's module names, as scripts import them. Implementations are in `frontend`."""
