"""Decides how commands print: formats, colours, widths, and which log lines they show."""
