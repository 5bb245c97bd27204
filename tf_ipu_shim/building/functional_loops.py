"""Functional loops, and which side effects in their bodies happen; checked on TensorFlow 2.15.1 and 2.21.0.

A loop of TensorFlow 1 runs in its body what the values that it carries on depend on: a session leaves out all else, and
so does `xla.compile` of stock TensorFlow 1.15.0 and 2.15.1 inside loops (not outside of them). Functional loops, which
XLA needs, run everything with a side effect, and so do those of stock TensorFlow where `tf.while_loop` makes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import control_flow_util, while_v2

from tf_ipu_shim import patches
from tf_ipu_shim.building import host_variables, tracing
from tf_ipu_shim.lowering import vocabulary

while_loop = while_v2.while_loop
"""TensorFlow's own, for loops of this package, which say themselves what happens in them."""


def install() -> None:
    """Has `tf.while_loop` in programs of TensorFlow 1 run in its body what its values need, and nothing else."""
    patches.replace(while_v2, "while_loop", _as_in_tensorflow1, "loops of TensorFlow 1 run what their values need")


def in_session_graph() -> bool:
    """Whether what is being built is for a session."""
    graph = ops.get_default_graph()
    while isinstance(graph, func_graph.FuncGraph):
        graph = graph.outer_graph
    return not (graph.building_function or ops.executing_eagerly_outside_functions())


def needed_only() -> Any:
    """A context in which loops are marked: their bodies run what the values that they carry on depend on."""
    return tracing.attributes({vocabulary.NEEDED_ATTRIBUTE: attr_value_pb2.AttrValue(b=True)})


def note_what_waits(body: Any) -> None:
    """Notes which ops wait for others so far: TensorFlow is about to have ops with side effects wait for each other.

    Args:
        body: the graph of a loop's body, when all of it is there.
    """
    host_variables.read_outside(body)
    for op in body.get_operations():
        names = [control.name.encode() for control in op.control_inputs]
        if names:
            waits = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=names))
            op._set_attr(vocabulary.WAITS_ATTRIBUTE, waits)


def _as_in_tensorflow1(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def while_loop(cond: Callable[..., Any], body: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if control_flow_util.ENABLE_CONTROL_FLOW_V2 or not tracing.in_compilation() or not in_session_graph():
            return stock(cond, body, *args, **kwargs)

        def noted(*values: Any) -> Any:
            carried = body(*values)
            note_what_waits(ops.get_default_graph())
            return carried

        with needed_only():
            return stock(cond, noted, *args, **kwargs)

    return while_loop
