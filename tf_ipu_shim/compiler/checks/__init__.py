"""Refuses what an IPU or XLA could not run, with the line of the script."""
