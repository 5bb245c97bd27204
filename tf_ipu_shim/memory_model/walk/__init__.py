"""Walks through the emitted functions in running order and writes a block of steps for each IPU."""
