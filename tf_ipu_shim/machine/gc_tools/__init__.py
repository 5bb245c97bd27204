"""Imitates Graphcore's `gc-info`, `gc-inventory` and `gc-monitor` for the simulated system."""
