"""IPU extensions of Keras models: functional, sequential, subclassed, pipelined."""
