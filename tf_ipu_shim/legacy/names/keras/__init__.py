"""Module names of Keras 2.6 and earlier, over the installed Keras 2."""
