"""Imports TensorFlow internals of `tf.function`: FuncGraphs, concrete functions and their calls."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager import (
    def_function,  # Function, the class, to know one from a Python function
)
from tensorflow.python.eager.polymorphic_function import (
    atomic_function,  # one function of a FuncGraph, defined and called
    concrete_function,  # ConcreteFunction with our graph
)
from tensorflow.python.util import (
    dispatch,  # how Keras makes layers of ops
    function_utils,  # the arguments of a function as Estimator and tf.data read them
    tf_decorator,  # decorators that TensorFlow sees through
)


def jit_compile(function: def_function.Function, default: Any = None) -> Any:
    """Returns whether XLA compiles a function."""
    return getattr(function, "_jit_compile", default)


def clone(function: def_function.Function, python_function: Any) -> Any:
    """Returns the same function, not traced yet."""
    return function._clone(python_function)


def source_graph(function: atomic_function.AtomicFunction) -> Any:
    """Returns the graph of a function that a graph holds; None: it was read from a file."""
    return getattr(function, "_cached_graph", None)


def compiled_twin(function: def_function.Function) -> Any:
    """Returns the same function, which XLA compiles."""
    twin = clone(function, None)
    twin._jit_compile = True
    return twin


def omit_tracing_warning(function: def_function.Function) -> None:
    """Keeps TensorFlow from warning that a function's Python code is traced often."""
    function._omit_frequent_tracing_warning = True
