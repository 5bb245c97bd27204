"""Finds ops of a session's graph outside compiled functions, and copies them into functions that each replica runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.frontend.tracing import stock_compile
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private import tensors as tf_tensors
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import device, ops

_RANDOM = ("Random", "StatefulUniform", "StatefulStandardNormal", "TruncatedNormal", "Multinomial")


def is_uncompiled() -> bool:
    """Returns whether ops here are on an IPU in a session's graph, outside of functions, loops and branches."""
    if context.executing_eagerly():
        return False
    graph = ops.get_default_graph()
    return (
        type(graph) is ops.Graph and tf_graphs.control_flow_context(graph) is None and stock_compile.is_in_ipu_scope()
    )


def find_replica_op(inputs: Sequence[Any], types: tuple[str, ...] = ()) -> Any:
    """Returns an op on an IPU that inputs depend on and whose value differs by replica; None if there is none."""
    replica_ops = (op for op in _producers(inputs, _may_be_on_ipu) if op.type in types or op.type.startswith(_RANDOM))
    return next(replica_ops, None)


class ProducerCopies:
    """Moves the computation of tensors into a function, so that each replica runs it.

    Only ops that compute the same whenever they run are copied: values that they use of other ops are the function's
    inputs.
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._tensors = list(tensors)
        copied = {op.name: op for op in _producers(tensors, _is_copied)}
        self._order = sorted(copied.values(), key=tf_graphs.number_of)
        read = [tensor for op in self._order for tensor in op.inputs]
        outside = [tensor for tensor in [*read, *self._tensors] if tensor.op.name not in copied]
        self.inputs = list({tensor.name: tensor for tensor in outside}.values())

    def build(self, *inputs: Any) -> list[Any]:
        """Returns the tensors in the current graph, computed of the inputs."""
        inside = {outer.name: inner for outer, inner in zip(self.inputs, inputs)}
        for op in self._order:
            copy = tf_graphs.create_op(
                ops.get_default_graph(),
                op.type,
                [inside[tensor.name] for tensor in op.inputs],
                [tensor.dtype for tensor in op.outputs],
                name=op.name,
                attrs={name: value for name, value in op.node_def.attr.items() if not name.startswith("_")},
                op_def=op.op_def,
            )
            inside.update((outer.name, inner) for outer, inner in zip(op.outputs, copy.outputs))
        return [inside[tensor.name] for tensor in self._tensors]


def _producers(tensors: Sequence[Any], predicate: Callable[[Any], bool]) -> Iterator[Any]:
    """Yields the ops that tensors are computed by, as far as each on the way is wanted."""
    seen: set[str] = set()
    pending = [tensor.op for tensor in tensors]
    while pending:
        operation = pending.pop()
        if operation.name in seen or not predicate(operation):
            continue
        seen.add(operation.name)
        yield operation
        pending.extend(tensor.op for tensor in operation.inputs)


def _is_copied(operation: Any) -> bool:
    return (
        _may_be_on_ipu(operation)
        and not operation.control_inputs
        and operation.type not in vocabulary.FRAMES
        and (operation.type == vocabulary.REPLICATION_INDEX or not op_types.is_stateful(operation.type))
        and not operation.type.startswith("Placeholder")
        and not any(value.HasField("func") or value.list.func for value in operation.node_def.attr.values())
        and all(_is_plain(tensor.dtype) for tensor in [*operation.inputs, *operation.outputs])
    )


def _is_plain(dtype: Any) -> bool:
    numeric = dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex
    return bool(numeric and not tf_tensors.is_ref_dtype(dtype))


def _may_be_on_ipu(operation: Any) -> bool:
    return not operation.device or device.DeviceSpec.from_string(operation.device).device_type in (None, "IPU")
