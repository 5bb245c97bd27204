"""Collectives outside compiled programs, among the ops of a session's graph.

A device of several IPUs runs plain ops as one replicated program: each replica has the same inputs. Kernels run them
once, so a collective is a program of its own, in which all replicas take part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import ipu_compiler, stock_compile
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import device, ops

_RANDOM = ("Random", "StatefulUniform", "StatefulStandardNormal", "TruncatedNormal", "Multinomial")


def build_replicated(build: Callable[..., Any], *inputs: Any) -> Any:
    """Builds an op of replicas: in a session's graph, on an IPU, as a program of its own.

    Raises:
        UnsupportedError: an input has another value in each replica, which a program of its own does not see.
    """
    if not _is_uncompiled():
        return build(*inputs)
    _check_host_inputs(inputs)
    (result,) = ipu_compiler.compile(build, list(inputs))
    return result


def _is_uncompiled() -> bool:
    """Whether an op made here is one of a session's graph, outside of functions, loops and branches."""
    if context.executing_eagerly():
        return False
    graph = ops.get_default_graph()
    return (
        type(graph) is ops.Graph and tf_graphs.control_flow_context(graph) is None and stock_compile.is_in_ipu_scope()
    )


def _check_host_inputs(inputs: Sequence[Any]) -> None:
    seen: set[str] = set()
    waiting = [tensor.op for tensor in inputs]
    while waiting:
        operation = waiting.pop()
        if operation.name in seen or not _may_be_on_ipu(operation):
            continue
        seen.add(operation.name)
        if operation.type == vocabulary.REPLICATION_INDEX or operation.type.startswith(_RANDOM):
            raise errors.UnsupportedError(
                f"A collective outside of a compiled function depends on {operation.name} ({operation.type}), of which "
                "each replica has another value. Build both in a function, and compile it with ipu_compiler.compile."
            )
        waiting.extend(tensor.op for tensor in operation.inputs)


def _may_be_on_ipu(operation: Any) -> bool:
    return not operation.device or device.DeviceSpec.from_string(operation.device).device_type in (None, "IPU")
