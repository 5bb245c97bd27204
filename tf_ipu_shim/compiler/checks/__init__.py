"""Checks that refuse programs which an IPU or XLA cannot run, naming the line of the script."""
