"""Embedded applications: programs compiled to files, and the engines that run them inside a host graph."""
