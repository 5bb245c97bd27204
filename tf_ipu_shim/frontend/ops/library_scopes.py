"""Names ops as PopLibs names the compute sets of its layers, for memory reports and profiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compat import v1

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private.protos import attr_value_pb2

# What TensorFlow calls a custom gradient, below the scope of its function.
_CUSTOM_GRADIENT = "/IdentityN_grad"


@contextmanager
def library_scope(name: str, layer: str) -> Iterator[None]:
    """Names the ops inside as a compute set of a PopLibs layer.

    Args:
        name: the compute set, such as `OutputGate`, or an XLA instruction and a compute set: `group-norm-grad/Whiten`.
        layer: the same for all layers that one function of Poplar's program can compute.

    Example:
        >>> with tf.Graph().as_default(), library_scope("OutputGate", "LSTM"):
        ...     op = tf.multiply(1.0, 2.0).op
        >>> op.get_attr("_ipu_library_name")
        b'OutputGate LSTM'
    """
    attribute = attr_value_pb2.AttrValue(s=f"{name} {layer}".encode())
    with tracing.attribute_scope({vocabulary.LIBRARY_NAME_ATTRIBUTE: attribute}):
        yield


@contextmanager
def gradient_scope(name: str) -> Iterator[None]:
    """Opens a scope inside a custom gradient as TensorFlow does for an op with a gradient: `SCOPE_grad/NAME`.

    Example:
        >>> @tf.custom_gradient
        ... def double(x):
        ...     def gradient(upstream):
        ...         with gradient_scope("Doubled"):
        ...             return upstream * 2
        ...     return x + x, gradient
        >>> with tf.Graph().as_default():
        ...     x = tf.constant(1.0)
        ...     with tf.name_scope("op"):
        ...         y = double(x)
        ...     print(tf.gradients(y, x)[0].op.name)
        gradients/op_grad/Doubled/mul
    """
    current = "" if tf.executing_eagerly() else v1.get_default_graph().get_name_scope()
    of_op = current.endswith(_CUSTOM_GRADIENT)
    with tf.name_scope(f"{current[: -len(_CUSTOM_GRADIENT)]}_grad/{name}/" if of_op else name):
        yield


def apply_output_gate(gate: Any, activated: Any, layer: str) -> Any:
    """Returns the output of an LSTM: output gate times activated cell state.

    Source: PopLibs `popnn/Lstm.cpp`.

    Example:
        >>> float(apply_output_gate(tf.constant(0.5), tf.constant(0.25), "LSTM"))
        0.125
    """
    name = vocabulary.OUTPUT_GATE
    with library_scope(name, layer):
        return tf.multiply(gate, activated, name=name)
