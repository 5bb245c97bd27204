"""Replicas of a program: their number, their own functions, statistics that they share."""
