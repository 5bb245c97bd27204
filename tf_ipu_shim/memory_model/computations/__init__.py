"""Describes the computation of each step: flops, elements, Poplar's names, and shared functions."""
