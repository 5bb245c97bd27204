"""Traces a value of a mini-batch to its source through calls and loops, and computes its size.

A recurrent layer is a call or a loop. Its gradient uses the results of each step, as lists, and the weights. TensorFlow
does not tell which of its tensors these are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.tensor_lists import MAKE, created_list
from tf_ipu_shim.tf_private.control_flow import control_flow_util_v2

_VIEWS = vocabulary.VIEWS | {"TensorListFromTensor"}


class TensorSource(NamedTuple):
    """The source of a tensor, inside and outside functions.

    Args:
        outer: the tensor of the same graph that it is a view of, or is passed on from.
        inner: the corresponding value in the functions that are called for it; the same value if none is called.
    """

    outer: Any
    inner: Any


class SourceFinder:
    """Finds sources; keeps the graphs of functions that it has looked into."""

    def __init__(self) -> None:
        self._graphs: dict[tuple[int, str], Any] = {}

    def find(self, tensor: Any) -> TensorSource:
        """Follows a tensor back."""
        while True:
            operation = tensor.op
            if operation.type in _VIEWS:
                tensor = operation.inputs[0]
            elif operation.type in vocabulary.LOOPS and tensor.dtype.base_dtype.name == "variant":
                # No more than the list can hold. It may be made with the gradient, long after the loop.
                return TensorSource(tensor, self.find(operation.inputs[tensor.value_index]).inner)
            elif operation.type in vocabulary.LOOPS and self._is_carried(tensor):
                tensor = operation.inputs[tensor.value_index]
            elif operation.type in vocabulary.CALLS:
                graph = self._graph(operation, "f")
                inner = self.find(graph.outputs[tensor.value_index]).inner
                index = _index_of(inner, graph.inputs)
                if index is None:
                    return TensorSource(tensor, inner)
                tensor = operation.inputs[index]
            else:
                return TensorSource(tensor, tensor)

    def _is_carried(self, tensor: Any) -> bool:
        """Returns whether a loop leaves a value unchanged."""
        body, index = self._graph(tensor.op, "body"), tensor.value_index
        return _index_of(self.find(body.outputs[index]).inner, body.inputs) == index

    def _graph(self, operation: Any, attribute: str) -> Any:
        key = (id(operation.graph), operation.name)
        if key not in self._graphs:
            shapes = [tensor.shape for tensor in operation.inputs]
            name = operation.get_attr(attribute).name
            self._graphs[key] = control_flow_util_v2.get_func_graph(operation, shapes, name)
        return self._graphs[key]


def tensor_bytes(tensor: Any) -> int:
    """Bytes of a tensor; one of unknown size or of no plain type counts nothing."""
    elements = tensor.shape.num_elements()
    if elements is None or tensor.dtype.base_dtype.name in ("resource", "variant", "string"):
        return 0
    return int(elements) * int(tensor.dtype.base_dtype.size)


def source_bytes(tensor: Any) -> int:
    """The bytes of a tensor of a graph, as `SourceFinder` returns them; for a list, the bytes of its capacity."""
    return created_list(tensor.op).bytes if tensor.op.type in MAKE else tensor_bytes(tensor)


def _index_of(tensor: Any, among: Any) -> int | None:
    return next((index for index, candidate in enumerate(among) if candidate is tensor), None)
