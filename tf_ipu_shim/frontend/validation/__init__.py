"""Checks of arguments that several calls share: counts, switches, members of enumerations, returned values."""
