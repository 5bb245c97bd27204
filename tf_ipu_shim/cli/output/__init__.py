"""How commands print their results: formats, colours, widths."""
