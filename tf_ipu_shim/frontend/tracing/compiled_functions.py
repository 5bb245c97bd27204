"""Compiles each `tf.function` of a strategy into one program, for any options of its declaration.

Uses attributes of `def_function.Function`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private import functions as tf_functions
from tf_ipu_shim.tf_private.functions import concrete_function, def_function

_TWIN = "_ipu_compiled_twin"
_HOLDS_PROGRAM = "_ipu_holds_program"


def is_function(function: Any) -> bool:
    """Returns whether it is a `tf.function`, or a concrete one.

    Example:
        >>> is_function(tf.function(abs))
        True
    """
    return isinstance(function, (def_function.Function, concrete_function.ConcreteFunction))


def behind_call(function: Any) -> Any:
    """Returns the `tf.function` that an object's `__call__` is, such as a `tf.Module`'s; else the object.

    Example:
        >>> behind_call(abs)(-1)
        1
    """
    bound = getattr(function, "__call__", None)  # noqa: B004
    return bound if is_function(bound) else function


def compile_function(function: Any) -> Any:
    """Returns the `tf.function` that does the same as one program.

    A function declared without `jit_compile=True` gets a compiled twin with separate traces, so the function itself
    does not change on the CPU.

    Example:
        >>> float(compile_function(tf.function(abs))(tf.constant(-1.0)))
        1.0
    """
    if tf_functions.jit_compile(function) or _declares_compilation(function) or contains_program(function):
        return function
    twin = getattr(function, _TWIN, None)
    if twin is None:
        twin = _compiled_copy(function)
        setattr(function, _TWIN, twin)  # the two live as long as each other
    return twin


def _compiled_copy(function: Any) -> Any:
    if isinstance(function, concrete_function.ConcreteFunction):
        return def_function.function(
            lambda *args, **kwargs: function(*args, **kwargs), autograph=False, jit_compile=True
        )
    return tf_functions.compiled_twin(function)


def contains_program(function: Any) -> bool:
    """Returns whether a function is the part for IPUs of a model that was exported for serving."""
    has_program = getattr(function, _HOLDS_PROGRAM, None)
    if has_program is None:
        has_program = isinstance(function, concrete_function.ConcreteFunction) and _has_program(
            function.graph.as_graph_def()
        )
        setattr(function, _HOLDS_PROGRAM, has_program)
    return has_program


def annotate_program(function: Any) -> None:
    """Marks a `tf.function` whose IPU part is already compiled as a program."""
    setattr(function, _HOLDS_PROGRAM, True)


def _has_program(graph_def: Any) -> bool:
    functions = [function.node_def for function in graph_def.library.function]
    return any(node.op == vocabulary.PROGRAM for nodes in (graph_def.node, *functions) for node in nodes)


def _declares_compilation(function: Any) -> bool:
    if not isinstance(function, concrete_function.ConcreteFunction):
        return False
    attributes = function.function_def.attr
    return "_XlaMustCompile" in attributes and attributes["_XlaMustCompile"].b
