"""Holds the state of this process (devices, seeds, plans, jobs), and handles its errors, forks and interrupts."""
