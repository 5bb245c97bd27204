"""Analyses the functions of a lowered program in execution order and writes a block of steps for each IPU."""
