"""Float8 tensors and custom floating-point formats."""
