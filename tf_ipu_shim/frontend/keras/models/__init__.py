"""Models made in the scope of an `IPUStrategy`: functional, sequential, subclassed, pipelined."""
