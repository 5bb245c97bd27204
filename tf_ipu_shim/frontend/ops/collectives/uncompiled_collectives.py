"""Builds a collective outside compiled functions, in a session's graph, as a separate program of all replicas.

A device of several IPUs runs plain ops as one replicated program: each replica has the same inputs. Kernels run them
once, so a collective is its own program, in which all replicas take part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import ipu_compiler, single_replica, uncompiled_graph
from tf_ipu_shim.tf_private.graphs import ops


def build_replicated(build: Callable[..., Any], *inputs: Any) -> Any:
    """Builds an op of replicas in a session's graph as a separate program on an IPU."""
    if not uncompiled_graph.is_uncompiled():
        return build(*inputs)
    replica_op = uncompiled_graph.find_replica_op(inputs, (vocabulary.REPLICATION_INDEX,))

    def checked(*values: Any) -> Any:
        with ops.control_dependencies(single_replica.assertions(replica_op, "A collective")):
            return build(*values)

    (result,) = ipu_compiler.compile(checked, list(inputs))
    return result
