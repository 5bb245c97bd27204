"""Prints the results of commands: formats, colours, widths."""
