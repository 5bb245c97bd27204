"""Floats of eight bits, and of any other layout."""
