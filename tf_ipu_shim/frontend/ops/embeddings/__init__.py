"""Embedding tables on the IPU and on the host."""
