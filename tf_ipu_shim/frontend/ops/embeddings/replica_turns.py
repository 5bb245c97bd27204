"""Orders what replicas do to the table of a host embedding, which all of them share.

All replicas look up rows before any of them updates the table, and they update it in the order of their indices. So
results are those of one mini-batch of all replicas' samples, and are the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import plugin
from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops, replication_ops
from tf_ipu_shim.frontend.strategies.strategy_extended import instance_reduction_scope
from tf_ipu_shim.frontend.tracing import uncompiled_graph
from tf_ipu_shim.runtime import devices


def wait_for_all(value: Any) -> Any:
    """Returns an integer tensor once all replicas have computed theirs."""
    if not _may_be_replicated():
        return value
    with instance_reduction_scope(), tf.control_dependencies([value]):
        return value + tf.cast(cross_replica_ops.cross_replica_sum(tf.constant(0)), value.dtype)


def replicas() -> Any:
    """Returns the number of replicas that update a table."""
    if not _may_be_replicated():
        return 1
    with instance_reduction_scope():
        return plugin.load().ops.ipu_replication_factor()


def in_turns(update: Callable[[], Any], values: list[Any]) -> Any:
    """Returns an op that runs `update` in one replica after the other, after all have computed their values."""
    if not _may_be_replicated():
        return update()

    def run_update() -> Any:
        done = update()
        with tf.control_dependencies([] if done is None else [done]):
            return tf.constant(0)

    def turn(replica: Any) -> Any:
        replica = wait_for_all(replica)
        done = tf.cond(tf.equal(replica, index), run_update, lambda: tf.constant(0))
        return (replica + 1 + done,)

    with instance_reduction_scope(), tf.control_dependencies(values):
        count = replicas()
        index = replication_ops.replication_index() % count
        return tf.while_loop(lambda replica: replica < count, turn, [tf.constant(0)], parallel_iterations=1)[0].op


def _may_be_replicated() -> bool:
    """Returns whether a program with several replicas may be what is built: known once IPUs are configured."""
    if tf.executing_eagerly() or uncompiled_graph.is_uncompiled():
        return False
    return devices.configured() is None or any(device.num_ipus > 1 for device in devices.active())
