"""Describes what each step computes: flops, elements, Poplar's names, and shared functions."""
