"""Advice for programs that do not fit: options, gradient accumulation and other partitions, each planned."""
