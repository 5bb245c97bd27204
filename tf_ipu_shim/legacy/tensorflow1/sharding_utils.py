"""`tensorflow.python.ipu.sharding_utils`: finds cut points in a graph and splits it over IPUs.

Graphcore's functions over `networkx` graphs are left out; `cut` does their work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from tf_ipu_shim.compiler.ir import sharding_annotations, vocabulary
from tf_ipu_shim.frontend.pipelines.sources import tensor_bytes
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.protos import attr_value_pb2

# Ops that are no work of an IPU's.
prohibited_ops = frozenset({"NoOp", "Placeholder", "Const"})

Edge = tuple[Any, Any]


def tensor_memory_use(tensor: Any) -> int:
    """Bytes of a tensor.

    Args:
        tensor: a tensor of static shape; others have size 0.

    Source: `tensorflow.python.ipu.sharding_utils.tensor_memory_use`.

    Example:
        >>> tensor_memory_use(tf.zeros([2, 3]))
        24
    """
    return tensor_bytes(tensor)


def children(input_op: Any) -> set[Any]:
    """Returns the ops that use an op's results.

    Args:
        input_op: the operation.

    Source: `tensorflow.python.ipu.sharding_utils.children`.

    Example:
        >>> with tf.Graph().as_default():
        ...     x = tf.constant(1.0)
        ...     y = tf.sin(x)
        ...     y.op in children(x.op)
        True
    """
    return {user for output in input_op.outputs for user in output.consumers()}


def set_ipu_shard(op: Any, index: int) -> None:
    """Marks an op for a shard.

    Args:
        op: the operation.
        index: the index of the shard's IPU.

    Source: `tensorflow.python.ipu.sharding_utils.set_ipu_shard`.

    Example:
        >>> with tf.Graph().as_default():
        ...     y = tf.constant(1.0)
        ...     set_ipu_shard(y.op, 1)
        ...     ipu.sharding.get_sharding(y.op)
        [1]
    """
    annotation = attr_value_pb2.AttrValue(s=sharding_annotations.sharding_annotation(index))
    tf_graphs.set_attr(op, vocabulary.SHARDING_ATTRIBUTE, annotation)


def ancestors(op: Any) -> set[Any]:
    """Returns an op and all that it gets data from."""
    visited, pending = {op}, deque([op])
    while pending:
        for tensor in pending.popleft().inputs:
            if tensor.op not in visited:
                visited.add(tensor.op)
                pending.append(tensor.op)
    return visited


def ops_between(first: Any, last: Any) -> list[Any]:
    """Returns the ops on all paths from one op to another, both included, in execution order."""
    before = ancestors(last)
    visited, pending = {first}, deque([first])
    while pending:
        for user in children(pending.popleft()):
            if user in before and user not in visited:
                visited.add(user)
                pending.append(user)
    return _ordered(visited) if last in visited else []


def _ordered(operations: set[Any]) -> list[Any]:
    missing = {op: sum(tensor.op in operations for tensor in op.inputs) for op in operations}
    pending = deque(sorted((op for op in operations if not missing[op]), key=lambda op: op.name))
    ordered = []
    while pending:
        op = pending.popleft()
        ordered.append(op)
        for tensor in op.outputs:
            for user in tensor.consumers():
                if user in missing:
                    missing[user] -= sum(input_tensor is tensor for input_tensor in user.inputs)
                    if not missing[user]:
                        pending.append(user)
                        del missing[user]
    return ordered


def splitting_edges(path: list[Any], edge_filter: Callable[[tuple[str, str]], bool] | None = None) -> list[Edge]:
    """Returns the edges that all paths from the first to the last op share."""
    path_ops = set(path)
    users = {op: [user for user in children(op) if user in path_ops] for op in path}
    to, after = dict.fromkeys(path, 0), dict.fromkeys(path, 0)
    to[path[0]], after[path[-1]] = 1, 1
    for op in path:
        for user in users[op]:
            to[user] += to[op]
    for op in reversed(path):
        after[op] += sum(after[user] for user in users[op])
    # The number of ways over an edge is that of all ways.
    edges = [(op, user) for op in path for user in users[op] if to[op] * after[user] == after[path[0]]]
    return [edge for edge in edges if edge_filter is None or not edge_filter((edge[0].name, edge[1].name))]


def cut(path: list[Any], edges: list[Edge], parts: int, cost: Callable[[Any], int]) -> dict[Any, int]:
    """Cuts a path so that the largest part costs as little as possible."""
    pieces = _pieces(path, edges)
    costs = [sum(map(cost, piece)) for piece in pieces]
    best = best_ends(costs, parts)
    return {
        op: part
        for part, (first, end) in enumerate(zip([0, *best], [*best, len(pieces)]))
        for piece in pieces[first:end]
        for op in piece
    }


def _pieces(path: list[Any], edges: list[Edge]) -> list[list[Any]]:
    piece = dict.fromkeys(path, 0)
    begins = {user: index for index, (_, user) in enumerate(edges, 1)}
    path_ops = set(path)
    for op in path:
        inner = [piece[tensor.op] for tensor in op.inputs if tensor.op in path_ops]
        piece[op] = begins.get(op, max(inner, default=0))
    return [[op for op in path if piece[op] == index] for index in range(len(edges) + 1)]


def best_ends(costs: list[int], parts: int) -> list[int]:
    """Cuts a sequence of numbers into parts with the smallest possible largest sum."""
    total = [0]
    for cost in costs:
        total.append(total[-1] + cost)
    count = len(costs)
    largest: list[float] = [float(total[end]) for end in range(count + 1)]
    choices: list[list[int]] = []
    for part in range(2, parts + 1):
        next_largest, choice = [float("inf")] * (count + 1), [0] * (count + 1)
        for end in range(part, count + 1):
            for begin in range(part - 1, end):
                largest_piece = max(largest[begin], float(total[end] - total[begin]))
                if largest_piece < next_largest[end]:
                    next_largest[end], choice[end] = largest_piece, begin
        largest = next_largest
        choices.append(choice)
    ends, end = [], count
    for choice in reversed(choices):
        end = choice[end]
        ends.append(end)
    return ends[::-1]


def mark(parts: dict[Any, int], operations: Iterable[Any]) -> None:
    """Annotates the ops of parts, and the ops that only feed them, with the part's shard."""
    allowed = set(operations)
    shard_of = dict(parts)
    pending = deque(sorted(parts, key=lambda op: parts[op]))
    while pending:
        op = pending.popleft()
        for tensor in op.inputs:
            if tensor.op in allowed and tensor.op not in shard_of:  # such as the read of a weight
                shard_of[tensor.op] = shard_of[op]
                pending.append(tensor.op)
    for op, index in shard_of.items():
        if op in allowed:
            set_ipu_shard(op, index)
