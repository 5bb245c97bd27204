"""`tensorflow.python.ipu.sharding`: reads and propagates sharding annotations."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.sharding import sharded_tape
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.protos import xla_data_pb2

_SHARDING = vocabulary.SHARDING_ATTRIBUTE
_COLOCATION = vocabulary.COLOCATION_ATTRIBUTE
_COLOCATED = b"loc:@"


def has_attr(o: Any, attr_name: str) -> bool:
    """Returns whether an op has an attribute.

    Args:
        o: the operation.
        attr_name: such as `"_XlaSharding"`.

    Source: `tensorflow.python.ipu.sharding.has_attr`.

    Example:
        >>> with tf.Graph().as_default(), ipu.scopes.ipu_shard(1):
        ...     one = tf.constant(1.0)
        >>> has_attr(one.op, "_XlaSharding")
        True
    """
    return attr_name in o.node_def.attr


def get_sharding(op: Any) -> list[int] | None:
    """Returns the shards that an op is marked for.

    Args:
        op: the operation.

    Returns:
        The IPU indices; None if the op is not marked.

    Source: `tensorflow.python.ipu.sharding.get_sharding`.

    Example:
        >>> with tf.Graph().as_default(), ipu.scopes.ipu_shard(1):
        ...     get_sharding(tf.constant(1.0).op)
        [1]
    """
    if not has_attr(op, _SHARDING):
        return None
    sharding = xla_data_pb2.OpSharding.FromString(op.get_attr(_SHARDING))
    return list(sharding.tile_assignment_devices)


def get_shard_from_colocation(op: Any) -> Any:
    """Returns the op that an op is colocated with, if that one is marked for a shard.

    Args:
        op: the operation.

    Returns:
        The marked operation; None if there is none.

    Source: `tensorflow.python.ipu.sharding.get_shard_from_colocation`.

    Example:
        >>> with tf.Graph().as_default() as graph:
        ...     with ipu.scopes.ipu_shard(1):
        ...         x = tf.constant(1.0)
        ...     with graph.colocate_with(x.op):
        ...         y = tf.constant(2.0)
        ...     get_shard_from_colocation(y.op) is x.op
        True
    """
    if not has_attr(op, _COLOCATION):
        return None
    for group in op.get_attr(_COLOCATION):
        if group.startswith(_COLOCATED):
            colocated = _find_operation(op.graph, group[len(_COLOCATED) :].decode())
            if colocated is not None and has_attr(colocated, _SHARDING):
                return colocated
    return None


def _find_operation(graph: Any, name: str) -> Any:
    """Returns the operation of a name, in the body of a loop or the graph with its variables; None without one."""
    while graph is not None:
        with contextlib.suppress(KeyError):
            return graph.get_operation_by_name(name)
        graph = getattr(graph, "outer_graph", None)
    return None


def dependencies(roots: Iterable[Any]) -> set[Any]:
    """Returns all ops that some ops depend on for data or order, themselves included.

    Args:
        roots: operations.

    Source: `tensorflow.python.ipu.sharding.dependencies`.

    Example:
        >>> with tf.Graph().as_default():
        ...     x = tf.constant(1.0)
        ...     loss = tf.sin(x)
        ...     x.op in dependencies([loss.op])
        True
    """
    pending = deque(roots)
    visited = set(pending)
    while pending:
        op = pending.popleft()
        for predecessor in [tensor.op for tensor in op.inputs] + list(op.control_inputs):
            if predecessor not in visited:
                visited.add(predecessor)
                pending.append(predecessor)
    return visited


def propagate_sharding(g: Any) -> None:
    """Marks ops that are not marked like the op they are colocated with, else like their first marked neighbour.

    Args:
        g: the graph whose ops to mark.

    Source: `tensorflow.python.ipu.sharding.propagate_sharding`.

    Example:
        >>> propagate_sharding(tf.compat.v1.get_default_graph())
    """
    waiting = [op for op in g.get_operations() if not has_attr(op, _SHARDING)]
    progress = True
    while waiting and progress:
        unplaced = []
        for op in waiting:
            source = _annotated_neighbor(op)
            if source is None:
                unplaced.append(op)
            else:
                tf_graphs.set_attr(op, _SHARDING, source.node_def.attr[_SHARDING])
        progress = len(unplaced) < len(waiting)
        waiting = unplaced


def _annotated_neighbor(op: Any) -> Any:
    colocated = get_shard_from_colocation(op)
    if colocated is not None:
        return colocated
    for tensor in op.outputs:
        for user in tensor.consumers():
            if has_attr(user, _SHARDING):
                return user
    for tensor in op.inputs:
        if has_attr(tensor.op, _SHARDING):
            return tensor.op
    return None


def enable_sharded_gradient_tape() -> None:
    """Makes `tf.GradientTape` place gradient ops on the shard of their forward op. Importing `ipu` does it.

    Source: `tensorflow.python.ipu.sharding.enable_sharded_gradient_tape`.

    Example:
        >>> enable_sharded_gradient_tape()
    """
    sharded_tape.enable_sharding()
