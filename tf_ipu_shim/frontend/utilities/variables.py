"""Moves the initialization of variables to the host CPU."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private import graphs as tf_graphs

_XLA_ATTRIBUTES = (vocabulary.COLOCATION_ATTRIBUTE, "_XlaCompile", "_XlaScope", vocabulary.SHARDING_ATTRIBUTE)


def move_variable_initialization_to_cpu(graph: Any = None) -> None:
    """Places variable initializers of a graph on the CPU, so that no program is compiled for them.

    The variables stay where they are; their initial values are then sent to them. Call it when the graph is
    complete. Values that depend on other variables stay with these.

    Args:
        graph: a graph; the default one if None.

    Raises:
        TypeError: it is not a graph.

    Source: `tensorflow.python.ipu.utils`.

    Example:
        >>> with tf.Graph().as_default() as graph:
        ...     with tf.device("/device:IPU:0"):
        ...         v = tf.compat.v1.get_variable("v", [2], use_resource=True)
        ...     move_variable_initialization_to_cpu()
        ...     v.initializer.inputs[1].device
        '/device:CPU:0'
    """
    from tf_ipu_shim.tf_private.graphs import ops

    graph = graph if graph is not None else ops.get_default_graph()
    if not isinstance(graph, ops.Graph):
        raise TypeError(f"graph must be a tf.Graph, not {graph!r}.")
    keys = (ops.GraphKeys.GLOBAL_VARIABLES, ops.GraphKeys.LOCAL_VARIABLES)
    variables = [variable for key in keys for variable in graph.get_collection(key)]
    initializers = [op for op in (getattr(variable, "initializer", None) for variable in variables) if op is not None]
    # An initial value has the device of the variable it is colocated with: pass that on.
    pending = [(initializer, initializer.device) for initializer in initializers]
    seen = set(initializers)
    while pending:
        user, device = pending.pop()
        for tensor in user.inputs:
            if tensor.op not in seen and not _uses_variable(tensor.op):
                seen.add(tensor.op)
                pending.append((tensor.op, device))
                _move_op(tensor.op, tensor.op.device or device)


def _uses_variable(op: Any) -> bool:
    from tensorflow.compat.v2 import dtypes

    from tf_ipu_shim.tf_private import tensors as tf_tensors

    return any(t.dtype == dtypes.resource or tf_tensors.is_ref_dtype(t.dtype) for t in (*op.inputs, *op.outputs))


def _move_op(op: Any, device: str) -> None:
    from tensorflow.compat.v2 import DeviceSpec as DeviceSpecV2

    spec = DeviceSpecV2.from_string(device or "")
    tf_graphs.set_device(op, spec.replace(device_type="CPU", device_index=0).to_string())
    for name in _XLA_ATTRIBUTES:
        if name in op.node_def.attr:
            tf_graphs.clear_attr(op, name)
