"""Gradients of several mini-batches, scaled losses, gradients kept for a script to see."""
