"""The simulated multi-IPU machine: chips, systems, links, device ids, attach locks, flags. Never imports TensorFlow."""
