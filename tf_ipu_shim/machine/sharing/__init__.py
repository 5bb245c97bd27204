"""Locks simulated IPUs for the exclusive use of a thread or process, with lock files."""
