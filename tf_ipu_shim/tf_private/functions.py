"""What tf.function traces and calls."""

from __future__ import annotations

from tensorflow.python.eager import (
    def_function,  # Function, the class, to know one from a Python function
)
from tensorflow.python.eager.polymorphic_function import (
    atomic_function,  # one function of a FuncGraph, defined and called
    concrete_function,  # ConcreteFunction with a graph of our own
)
from tensorflow.python.util import (
    dispatch,  # how Keras makes layers of ops
    function_utils,  # the arguments of a function as Estimator and tf.data read them
    tf_decorator,  # decorators that TensorFlow sees through
)
