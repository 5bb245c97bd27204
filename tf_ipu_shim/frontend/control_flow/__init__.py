"""Loops and branches that run on the IPU without returning to Python."""
