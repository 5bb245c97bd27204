"""Simulates the multi-IPU system: chips, links, locks, options, memory and pipelines. Never imports TensorFlow."""
