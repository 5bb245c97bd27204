"""Writes the functions that run: one XLA launch per program, exchanges and host ops, each with its device."""
