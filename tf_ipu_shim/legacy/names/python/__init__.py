"""Names that Python's own library, NumPy and PyYAML have removed, for scripts alone."""
