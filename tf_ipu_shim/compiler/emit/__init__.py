"""Writes the functions that run: an XLA launch a program, exchanges, host ops, each with a device."""
