"""Checks and converts arguments of many calls: counts, booleans, enum members, results of users' functions."""
