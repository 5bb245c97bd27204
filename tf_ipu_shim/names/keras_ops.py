"""Wraps Graphcore's ops as Keras layers when they are called with symbolic Keras tensors.

TensorFlow's `add_dispatch_support` calls an op first and asks Keras if it fails. Our ops consist of others, each of
which would be a layer by then, so Keras is asked first. Nothing here imports TensorFlow before that.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_MODULES = (
    "tensorflow.python.ipu.ops.",
    "tensorflow.python.ipu.distributed.",
    "tensorflow.compiler.plugin.poplar.ops.",
)
_GRADIENTS = "_grad"
_SYMBOLIC = ".engine.keras_tensor"  # the module of a Keras 2 package that has the class of symbolic tensors
_PACKAGES = {"tensorflow.python.ipu.": "ipu.", "tensorflow.compiler.plugin.poplar.": "ipu.poplar."}
"""Prefix of module names -> prefix under which layers of their ops are saved."""

_ops: dict[Callable[..., Any], Callable[..., Any]] = {}
"""The exported wrapper of a function, by both names."""
_in_layers: dict[Callable[..., Any], Callable[..., Any]] = {}
"""The function that a layer calls, by the exported wrapper."""


def is_op_module(module: str) -> bool:
    """Returns whether a module's ops must accept symbolic tensors.

    Example:
        >>> is_op_module("tensorflow.python.ipu.ops.rand_ops"), is_op_module("tensorflow.python.ipu.loops")
        (True, False)
    """
    return module.startswith(_MODULES) and not module.endswith(_GRADIENTS)


def wrap_op(module: types.ModuleType, name: str) -> None:
    """Wraps a module's public functions to accept symbolic tensors."""
    names = vars(module).get("__all__") or [
        key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__
    ]
    for key in names:
        function = vars(module).get(key)
        if isinstance(function, types.FunctionType) and not key.startswith("_"):
            # Not `setattr`: a module of re-exports would pass the wrapper on to the source.
            vars(module)[key] = _ops.get(function) or _accept_symbolic(function, symbol_of(name, key))


def symbol_of(module: str, name: str) -> str:
    """Returns the name under which layers of an op are saved.

    Example:
        >>> symbol_of("tensorflow.python.ipu.ops.rand_ops", "dropout")
        'ipu.ops.rand_ops.dropout'
    """
    package = next(package for package in _PACKAGES if module.startswith(package))
    return f"{_PACKAGES[package]}{module[len(package) :]}.{name}"


def find_op(symbol: str) -> Callable[..., Any] | None:
    """Returns the op that a layer was saved with, if it is one of ours."""
    path, _, name = symbol.rpartition(".")
    for package, short in reversed(_PACKAGES.items()):
        module = package + path[len(short) :]
        if path.startswith(short) and is_op_module(module):
            function: Any = getattr(importlib.import_module(module), name, None)
            return _in_layers.get(function)
    return None


def _accept_symbolic(function: types.FunctionType, symbol: str) -> Callable[..., Any]:
    """Returns a function that calls `function`, or wraps it in a layer if an argument is a symbolic Keras tensor."""

    @functools.wraps(function)
    def op(*args: Any, **kwargs: Any) -> Any:
        if _is_symbolic(args) or _is_symbolic(kwargs):
            return _as_layer(in_layer, args, kwargs)
        return function(*args, **kwargs)

    @functools.wraps(function)
    def in_layer(*args: Any, **kwargs: Any) -> Any:
        return _ensure_output(function(*args, **kwargs), [*args, *kwargs.values()][0])

    in_layer.__dict__["_tf_api_names"] = (symbol,)  # where `tf_export` writes them
    _ops[function] = _ops[op] = op
    _in_layers[op] = in_layer
    return op


def _ensure_output(result: Any, first: Any) -> Any:
    """The result of a layer's op: for one without outputs, such as a print, its first argument once it has run."""
    import tensorflow.compat.v2 as tf

    if result is not None and not isinstance(result, tf.Operation):
        return result
    with tf.control_dependencies([] if result is None else [result]):
        return tf.nest.map_structure(tf.identity, first)


def _is_symbolic(value: Any) -> bool:
    """Returns whether something is a symbolic tensor of Keras 2, or holds one."""
    if isinstance(value, Mapping):
        return any(map(_is_symbolic, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_is_symbolic, value))
    if hasattr(type(value), "__tf_flatten__"):
        return _is_symbolic(value.__tf_flatten__()[1])
    return any(kind.__module__.endswith(_SYMBOLIC) for kind in type(value).__mro__)


def _as_layer(op: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    """The output of a layer that Keras makes of an op; of the Keras package whose tensors are among the arguments."""
    from tf_ipu_shim.tf_private.functions import dispatch

    if not hasattr(op, dispatch.FALLBACK_DISPATCH_ATTR):
        dispatch.add_fallback_dispatch_list(op)
        op.__dict__["__signature__"] = inspect.signature(op)  # Keras asks for it without following wrappers
    return dispatch.dispatch(op, args, kwargs)
