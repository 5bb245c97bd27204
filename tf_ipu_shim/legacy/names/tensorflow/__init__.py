"""Names, signatures and methods that TensorFlow had from 1.15 to 2.6."""
