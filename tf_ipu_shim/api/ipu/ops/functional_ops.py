"""`tensorflow.python.ipu.ops.functional_ops`: outlined functions, compiled once and called several times."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private.protos import attr_value_pb2


@argument_order(1, "name", until=(2, 0))
def outlined_function(
    func: Callable[..., Any] | None = None,
    unique_sharding: bool | str = False,
    keep_input_layouts: bool | None = None,
    name: Any = None,
) -> Any:
    """Marks a function whose calls share their code on an IPU.

    A call computes the function, and gradients pass through it. XLA decides here which code is shared; the values do
    not depend on it. In profiles and events, calls that do the same are one function. Shared code does not know its
    arguments' values: a function with a tensor for a shape, axis or permutation fails with an InvalidArgumentError.
    Python numbers and lists, and tensors captured from outside the function, may be used instead.

    Args:
        func: a function of tensors that returns tensors. If it is left out, a decorator is returned.
        unique_sharding: whether all its ops are on one IPU, which Graphcore's compiler uses; placement here follows the
            ops' own shards.
        keep_input_layouts: a layout of tensors over tiles; no effect.
        name: the name of the calls; the function's own name when left out. (SDK 1.4 has it as the second argument.)

    Returns:
        The function with the same arguments.

    Source: `tensorflow.python.ipu.ops.functional_ops.outlined_function`.

    Example:
        >>> @outlined_function
        ... def layer(x, w):
        ...     return tf.nn.relu(tf.matmul(x, w))
    """
    if isinstance(unique_sharding, str):  # SDK 1.4: outlined_function(func, name)
        name, unique_sharding = unique_sharding, False
    if func is None:
        return functools.partial(
            outlined_function, unique_sharding=unique_sharding, keep_input_layouts=keep_input_layouts, name=name
        )
    called: Callable[..., Any] = func
    scope = name or getattr(func, "__name__", "outlined_function").strip("<>_") or "outlined_function"

    @functools.wraps(called)
    def call(*args: Any, **kwargs: Any) -> Any:
        with tf.name_scope(scope) as scope_context:
            if not tracing.in_compilation():
                return called(*args, **kwargs)
            positional, keywords = tf.nest.map_structure(functools.partial(_argument, scope), (args, kwargs))
            attribute = attr_value_pb2.AttrValue(s=scope_context.rstrip("/").encode())
            with tracing.attribute_scope({vocabulary.OUTLINED_CALL_ATTRIBUTE: attribute}):
                return called(*positional, **keywords)

    return call


def _argument(function: str, value: Any) -> Any:
    """Returns an argument as the function sees it: whole numbers, which could be shapes or axes, are marked."""
    if not isinstance(value, tf.Tensor) or not value.dtype.is_integer:
        return value
    with tracing.attribute_scope({vocabulary.OUTLINED_ATTRIBUTE: attr_value_pb2.AttrValue(s=function.encode())}):
        return tf.identity(value, name="argument")


def function(func: Callable[..., Any], name: Any = None) -> Any:
    """Returns the name of `outlined_function` up to SDK 1.4.

    Args:
        func: accepts and returns tensors.
        name: the name of the calls.

    Returns:
        The function with the same arguments.

    Source: `tensorflow.python.ipu.ops.functional_ops.function`.

    Example:
        >>> layer = function(lambda x: tf.nn.relu(x))
    """
    return outlined_function(func, name=name)


def _convert_to_list(values: Any) -> list[Any]:
    """Returns a value or a sequence of values as a list; Graphcore's own tests call it for a stage's results."""
    return list(values) if isinstance(values, (list, tuple)) else [values]
