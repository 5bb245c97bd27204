"""The simulated system as Graphcore's `gc-info`, `gc-inventory` and `gc-monitor` show it."""
