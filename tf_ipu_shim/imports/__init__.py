"""Extends Python's import system: callbacks after imports, module aliases, detection of the importing code."""
