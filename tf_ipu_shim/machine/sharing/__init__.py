"""Exclusive use of simulated IPUs by threads and processes, and the files that make it so."""
