"""The driver that the plugin calls when a program first runs: lowers, plans, describes and answers."""
