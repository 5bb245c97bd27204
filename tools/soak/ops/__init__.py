"""Each TensorFlow op with a CPU kernel: its cases, its hostile inputs, and their results."""
