"""Advises on programs that do not fit: plans other options, gradient accumulation and partitions."""
