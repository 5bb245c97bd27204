"""Provides Graphcore's modules under the names that scripts import; most of their code is in `frontend`."""
