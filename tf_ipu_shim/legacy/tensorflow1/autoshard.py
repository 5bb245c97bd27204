"""`tensorflow.python.ipu.autoshard` of SDK 2.0 and older: automatic sharding of a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.sharding import sharding
from tf_ipu_shim.frontend.utilities.devices import get_num_of_ipus_in_device
from tf_ipu_shim.legacy.tensorflow1 import sharding_utils
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.graphs import ops


def automatic_sharding(
    num_shards: int,
    input_ts: Any,
    loss_ts: Any,
    edge_filter: Callable[[tuple[str, str]], bool] | None = None,
    frozen_inference: bool = False,
) -> None:
    """Marks all ops on the IPU for shards, so that the largest shard needs as little memory as possible.

    The graph is cut at an edge that all paths from the input to the loss share; gradient ops follow their forward ops.

    Args:
        num_shards: number of IPUs.
        input_ts: the tensor closest to the input data.
        loss_ts: the tensor closest to the loss.
        edge_filter: receives the names of an edge's two ops; returns True if the edge must not be cut.
        frozen_inference: whether weights are constants.

    Raises:
        ValueError: no op is on an IPU.
        RuntimeError: the loss does not depend on the input.
        Exception: there are fewer places to cut than are needed.

    Source: `tensorflow.python.ipu.autoshard.automatic_sharding`.

    Example:
        >>> with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
        ...     x = tf.compat.v1.placeholder(tf.float32, [8, 4])
        ...     hidden = tf.tanh(tf.matmul(x, tf.ones([4, 4])))
        ...     loss = tf.reduce_sum(tf.matmul(hidden, tf.ones([4, 2])))
        ...     automatic_sharding(2, x, loss)
        ...     ipu.sharding.get_sharding(loss.op)
        [1]
    """
    operations = [op for op in input_ts.graph.get_operations() if _is_on_ipu(op)]
    if not operations:
        raise ValueError(
            "No ops placed on IPU device to shard: the graph has none; expected at least one. Build the model "
            "inside `with ipu.scopes.ipu_scope('/device:IPU:0'):`."
        )
    path = sharding_utils.ops_between(input_ts.op, loss_ts.op)
    if not path:
        raise RuntimeError(
            "Error: number of disconnected subgraphs in auto-sharder is not one: no path leads from "
            f"{input_ts.name} to {loss_ts.name}. Build one connected model inside ipu_autoshard."
        )
    edges = sharding_utils.splitting_edges(path, edge_filter)
    if len(edges) + 1 < num_shards:
        raise Exception(
            f"There are fewer subgraphs ({len(edges) + 1}) than available shards ({num_shards}): the paths from "
            "input to loss share too few edges. Use fewer shards, or mark them with ipu.scopes.ipu_shard."
        )
    path_ops = set(path)

    def cost(op: Any) -> int:
        weights = sum(
            sharding_utils.tensor_memory_use(tensor)
            for tensor in op.inputs
            if tensor.op not in path_ops and (frozen_inference or tensor.op.type != "Const")
        )
        return weights + sum(map(sharding_utils.tensor_memory_use, op.outputs))

    parts = sharding_utils.cut(path, edges, num_shards, cost)
    sharding_utils.mark(parts, operations)
    sharding.propagate_sharding(input_ts.graph)


@contextlib.contextmanager
def ipu_autoshard() -> Iterator[None]:
    """Spreads the ops made inside over all IPUs of their device, in the order they are made.

    Each IPU gets a run of them, so that the fullest IPU needs as little memory as possible. Ops that are marked
    already keep their mark.

    Raises:
        ValueError: no op is on an IPU.

    Source: `tensorflow.python.ipu.autoshard.ipu_autoshard`.

    Example:
        >>> with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
        ...     with ipu_autoshard():
        ...         doubled = 2.0 * tf.compat.v1.placeholder(tf.float32, [4])
    """
    graph = ops.get_default_graph()
    before = set(graph.get_operations())
    yield
    new_ops = [op for op in graph.get_operations() if op not in before and _is_on_ipu(op)]
    if not new_ops:
        raise ValueError(
            "No ops placed on IPU device to shard: none was created on one inside ipu_autoshard, which "
            "needs some. Build the model in an ipu_scope inside it."
        )
    num_ipus = get_num_of_ipus_in_device(new_ops[0].device)
    costs = [
        sum(map(sharding_utils.tensor_memory_use, op.outputs)) * (2 if op.type == vocabulary.READ_VARIABLE else 1)
        for op in new_ops
    ]
    ends = sharding_utils.best_ends(costs, min(num_ipus, len(new_ops)))
    for shard, (first, end) in enumerate(zip([0, *ends], [*ends, len(new_ops)])):
        for op in new_ops[first:end]:
            if sharding.get_sharding(op) is None:
                sharding_utils.set_ipu_shard(op, shard)


def _is_on_ipu(op: Any) -> bool:
    return bool(op.device) and device_lib.DeviceSpec.from_string(op.device).device_type == "IPU"
