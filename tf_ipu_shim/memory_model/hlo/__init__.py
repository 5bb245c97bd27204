"""Obtains XLA's HLO of a program and translates its instructions."""
