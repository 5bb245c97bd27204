"""XLA's form of one program: how to get it, and its instructions as values and steps."""
