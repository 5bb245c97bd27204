"""Analyses emitted functions in execution order and writes a block of steps for each IPU."""
