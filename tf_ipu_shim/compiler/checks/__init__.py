"""Checks that refuse what an IPU or XLA cannot run, naming the line of the script."""
