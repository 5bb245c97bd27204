"""Prepares a program at its first run for the plugin: lowers it, plans its memory and chooses its execution mode."""
