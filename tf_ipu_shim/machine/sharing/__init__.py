"""Exclusive use of simulated IPUs by threads and processes, with lock files."""
