"""Keras optimizers that wrap another one: loss scaling and gradient accumulation."""
