"""Checks the style guide's rules for text: pages, docstrings, messages and option help."""
