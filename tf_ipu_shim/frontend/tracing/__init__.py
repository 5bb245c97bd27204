"""Traces Python functions into the functions of IPU programs."""
