"""Utilities of older SDKs."""
