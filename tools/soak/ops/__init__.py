"""Each TensorFlow op with a CPU kernel: its cases, its hostile inputs, and what comes out."""
