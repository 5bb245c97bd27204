"""Implements `ipu.utils` (devices, trace events, initializers, exported data), and tile mappings of `test_utils`."""
