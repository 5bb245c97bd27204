"""Gradient accumulation, loss scaling and captured gradients."""
