"""Helpers behind `ipu.utils`: devices, trace events, variables, data files."""
