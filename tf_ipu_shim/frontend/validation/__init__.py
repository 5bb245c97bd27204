"""Checks of arguments that several calls share: counts, booleans, enum members, returned values."""
