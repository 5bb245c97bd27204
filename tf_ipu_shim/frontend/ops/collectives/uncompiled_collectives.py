"""Collectives outside compiled programs, among the ops of a session's graph.

A device of several IPUs runs plain ops as one replicated program: each replica has the same inputs. Kernels run them
once, so a collective is its own program, in which all replicas take part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import ipu_compiler, uncompiled_graph


def build_replicated(build: Callable[..., Any], *inputs: Any) -> Any:
    """Builds an op of replicas: in a session's graph, on an IPU, as its own program."""
    if not uncompiled_graph.is_uncompiled():
        return build(*inputs)
    _check_same_in_replicas(inputs)
    (result,) = ipu_compiler.compile(build, list(inputs))
    return result


def _check_same_in_replicas(inputs: Sequence[Any]) -> None:
    operation = uncompiled_graph.find_replica_op(inputs, (vocabulary.REPLICATION_INDEX,))
    if operation is not None:
        raise errors.UnsupportedError(
            f"A collective outside of a compiled function depends on {operation.name} ({operation.type}), of which "
            "each replica has another value; it can only depend on equal values. "
            "Build both in a function, and compile it with ipu_compiler.compile."
        )
