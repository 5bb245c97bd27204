"""A model's options for replication, gradient accumulation and pipelining."""
