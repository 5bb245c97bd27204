"""Implements libpva's object model over this package's profiles, as `pva.openReport` returns it."""
