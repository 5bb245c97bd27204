"""Represents a program's functions for all compiler passes, and queries properties of op types and attributes."""
