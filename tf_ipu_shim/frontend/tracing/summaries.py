"""Leaves TensorFlow 1 summaries out of functions traced for IPUs.

Replaces `summary_op_util.skip_summary`, which `tf.compat.v1.summary` asks; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.distribute import summary_op_util
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.utilities import tf_logging

_LEFT_OUT = (
    "tf.compat.v1.summary in a program for the IPUs writes nothing, as in xla.compile: there are no strings on an IPU. "
    "Return the value from the program, send it by an outfeed, or give an IPUEstimatorSpec a host_call."
)


def skip_summaries() -> None:
    """Builds programs without summaries from now on; other graphs are not changed."""
    why = "programs leave out summaries except in host scopes, as `xla.compile` does"
    patches.replace(summary_op_util, "skip_summary", _patch_skip_summary, why=why)


def _patch_skip_summary(stock: Callable[[], Any]) -> Callable[[], Any]:
    def skip_summary() -> Any:
        if control_flow_ops.get_enclosing_xla_context() is None:
            return stock()
        if vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE in tf_graphs.attr_scope_map(ops.get_default_graph()):
            return stock()
        tf_logging.log_first_n(tf_logging.WARN, _LEFT_OUT, 1)
        return True

    return skip_summary


def remove_host_summaries(graph: Any) -> None:
    """Removes summaries made in a program's host scopes from the session's `merge_all`."""
    for key in (ops.GraphKeys.SUMMARIES, tf_graphs.SUMMARIES_OF_VERSION_2):
        if collection := graph.get_collection_ref(key) if key in graph.collections else []:
            collection[:] = [operation for operation in collection if not _is_descendant(operation, graph)]


def _is_descendant(summary: Any, graph: Any) -> bool:
    around = getattr(summary, "graph", None)
    while around is not None and around is not graph:
        around = getattr(around, "outer_graph", None)
    return around is graph
