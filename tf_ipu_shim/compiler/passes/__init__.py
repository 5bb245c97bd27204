"""Rewrites of whole functions that apply to both execution modes."""
