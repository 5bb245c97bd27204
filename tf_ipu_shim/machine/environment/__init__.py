"""Reads the environment variables of the simulated system and describes the effect of their options."""
