"""Collects, stores, compares and shows profiles: cycles and memory of each op and IPU. Never imports TensorFlow.

`docs/reference/profile_format.md` describes the file.
"""
