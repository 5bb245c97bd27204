"""Estimates the memory and compute cost of graph nodes from their shapes, to balance pipeline stages.

Uses TensorFlow's statistics of floating-point operations; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.machine import systems
from tf_ipu_shim.tf_private.graphs import (
    flops_registry,  # noqa: F401  # registers the statistics
    ops,
)


@dataclasses.dataclass(frozen=True)
class NodeCost:
    """The cost of one node.

    Args:
        operations: floating-point operations, and one for each element of its results.
        constants: bytes of the constants that it reads.
        results: bytes of its results.
    """

    operations: int
    constants: int
    results: int

    def value(self, priority: str) -> int:
        """Returns the cost to balance: operations for `"cycle"`, bytes for `"memory"`."""
        return self.operations if priority == "cycle" else self.constants + self.results


def node_costs(graph: Any, names: Sequence[str]) -> list[NodeCost]:
    """Returns the costs of some nodes of a `tf.Graph`."""
    return [_node_cost(graph, graph.get_operation_by_name(name)) for name in names]


def stage_bytes(costs: Sequence[NodeCost]) -> int:
    """Returns the memory of a stage on its chip: constants and the largest results.

    Example:
        >>> stage_bytes([NodeCost(0, 100, 8), NodeCost(0, 20, 16)])
        136
    """
    return sum(cost.constants for cost in costs) + max((cost.results for cost in costs), default=0)


def chip_bytes() -> int:
    """Returns the memory of one chip of the simulated system."""
    return systems.current().chip.total_bytes


def _node_cost(graph: Any, operation: Any) -> NodeCost:
    constants = [tensor for tensor in operation.inputs if _is_constant(tensor.op)]
    elements = sum(_num_elements(tensor) for tensor in operation.outputs)
    return NodeCost(
        _flops(graph, operation) + elements,
        sum(_num_bytes(tensor) for tensor in constants),
        sum(_num_bytes(tensor) for tensor in operation.outputs),
    )


def _is_constant(operation: Any) -> bool:
    while operation.type == "Identity":
        operation = operation.inputs[0].op
    return bool(operation.type == "Const")


def _flops(graph: Any, operation: Any) -> int:
    try:
        return int(ops.get_stats_for_node_def(graph, operation.node_def, "flops").value or 0)
    except ValueError:  # a shape that the statistics need is not known
        return 0


def _num_elements(tensor: Any) -> int:
    has_rank = tensor.shape.rank is not None
    return math.prod(1 if axis is None else axis for axis in tensor.shape.as_list()) if has_rank else 1


def _num_bytes(tensor: Any) -> int:
    return _num_elements(tensor) * int(tensor.dtype.size)
