"""Refuses programs that an IPU or XLA cannot run, and warns of misplaced ops, naming the line of the script."""
