"""Loops and conditionals that run on the IPU without returning to Python."""
