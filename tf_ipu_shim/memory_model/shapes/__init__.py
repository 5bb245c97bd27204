"""Infers shapes and sizes of tensors outside XLA programs, and which axis is the mini-batch."""
