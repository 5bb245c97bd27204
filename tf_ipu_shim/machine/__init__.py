"""The simulated multi-IPU system: chips, links, device ids, attach locks, flags. Never imports TensorFlow."""
