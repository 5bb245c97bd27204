"""Assigns ops to locations and phases, and decides what is cloned or kept out of XLA programs."""
