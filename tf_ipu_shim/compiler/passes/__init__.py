"""Rewrites whole functions for both execution modes alike, except `assertions`, with the analyses that this needs."""
