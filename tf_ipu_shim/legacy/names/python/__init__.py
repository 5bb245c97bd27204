"""Restores names that Python, NumPy and PyYAML have removed, for scripts only."""
