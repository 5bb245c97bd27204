"""Orders side effects in the loop bodies and branches of a session's compiled function as stock `xla.compile` does.

In a `tf.function` TensorFlow orders them as the script has them; in a session's graph it orders none.
Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.frontend.tracing import access_order, needed_ops, side_effects
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.control_flow import control_flow_util_v2
from tf_ipu_shim.tf_private.graphs import auto_control_deps

_BODIES = (
    control_flow_util_v2.CondBranchFuncGraph,
    control_flow_util_v2.WhileBodyFuncGraph,
    control_flow_util_v2.WhileCondFuncGraph,
)


def install() -> None:
    """Orders side effects in the bodies and branches of a session's graph as stock does."""
    why = "a session's bodies and branches order accesses to variables as stock xla.compile does"
    patches.replace(auto_control_deps.AutomaticControlDependencies, "__exit__", _exit, why)


def _exit(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def __exit__(self: Any, *raised: Any) -> Any:
        graph = getattr(self, "_graph", None)
        if not (isinstance(graph, _BODIES) and _is_in_stock_order(graph.outer_graph)):
            return stock(self, *raised)
        tf_graphs.order_side_effects_as_outer(graph)
        graph.experimental_acd_manager = None
        self.collective_manager_ids_used = {}
        if getattr(graph, "_ipu_like_a_session", False):
            needed_ops.note_needed(graph, [tensor.op for tensor in tf_graphs.returned_tensors(self)])
        for traced in _complete(graph):
            access_order.order_accesses(traced)
            traced.control_outputs.extend(side_effects.order_body(traced))
        return None

    return __exit__


def _complete(graph: Any) -> list[Any]:
    """Returns the graphs to order: both branches of a TensorFlow 1 cond after the second, as both decide the names."""
    if not hasattr(graph, "_ipu_branches"):
        return [graph]
    return graph._ipu_branches if len(graph._ipu_branches) == 2 else []


def _is_in_stock_order(graph: Any) -> bool:
    while isinstance(graph, _BODIES):
        graph = graph.outer_graph
    return getattr(graph, "_ipu_in_stock_order", False)
