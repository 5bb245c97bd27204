"""Shapes and sizes of tensors outside XLA programs, and which of their axes is the mini-batch."""
