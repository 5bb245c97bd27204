"""Collectives among the plain ops of a session's graph: all IPUs of the device take part, each with the same inputs."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.plugin.poplar.ops import gen_poputil_ops
from tensorflow.python import ipu

v1 = tf.compat.v1
IPU = "/device:IPU:0"
VALUES = np.array([1.0, 2.0, -3.0, 8.0], np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def collectives(x, count):
    cross = ipu.ops.cross_replica_ops
    return {
        "normalised": gen_poputil_ops.ipu_replication_normalise(x),
        "normalised and more": gen_poputil_ops.ipu_replication_normalise(2 * x) + x,
        "factor": gen_poputil_ops.ipu_replication_factor(),
        "sum": cross.cross_replica_sum(x),
        "sums of one": cross.cross_replica_sum(x, replica_group_size=1),
        "mean": cross.cross_replica_mean(x),
        "gathered": ipu.ops.all_to_all_op.all_gather(x, count),
        "exchanged": ipu.ops.all_to_all_op.all_to_all(x, 0, 0, count),
        "scattered": ipu.ops.reduce_scatter_op.reduce_scatter(x, count),
    }


@pytest.mark.parametrize("count", [1, 2, 4])
def test_replicas_take_part_in_plain_collectives(ipus, count):
    ipus(count)
    with ipu.scopes.ipu_scope(IPU):
        x = v1.placeholder(tf.float32, VALUES.shape)
        made = collectives(x, count)
    with v1.Session() as session:
        found = session.run(made, {x: VALUES})
    size = VALUES.size // count
    expected = {
        "normalised": VALUES / count,
        "normalised and more": 2 * VALUES / count + VALUES,
        "factor": count,
        "sum": count * VALUES,
        "sums of one": VALUES,
        "mean": VALUES,
        "gathered": np.tile(VALUES, [count, 1]),
        "exchanged": np.tile(VALUES[:size], count),  # of the first replica, which a session fetches
        "scattered": count * VALUES[:size],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, err_msg=name)


def test_a_gather_for_other_replicas_is_refused(ipus):
    ipus(2)
    with ipu.scopes.ipu_scope(IPU):
        gathered = ipu.ops.all_to_all_op.all_gather(tf.constant(VALUES), 4)
    with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="replication_factor of 4"):
        session.run(gathered)


@pytest.mark.parametrize(
    "own", [lambda: tf.cast(ipu.ops.replication_ops.replication_index(), tf.float32), lambda: tf.random.normal([2])]
)
def test_values_of_each_replica_are_refused(ipus, own):
    """A program of its own would see the value of one replica."""
    ipus(2)
    with ipu.scopes.ipu_scope(IPU):
        value = 2 * own() + 1
        with pytest.raises(NotImplementedError, match="of which each replica has another value.*ipu_compiler.compile"):
            ipu.ops.cross_replica_ops.cross_replica_sum(value)


def test_random_numbers_of_the_host_are_the_same_for_all(ipus):
    ipus(2)
    with tf.device("cpu"):
        value = tf.random.normal([3])
    with ipu.scopes.ipu_scope(IPU):
        total = ipu.ops.cross_replica_ops.cross_replica_sum(value)
    with v1.Session() as session:
        one, both = session.run([value, total])
    np.testing.assert_allclose(both, 2 * one, rtol=1e-6)


def test_in_a_compiled_function_collectives_are_part_of_it(ipus):
    ipus(2)

    def step():
        index = tf.cast(ipu.ops.replication_ops.replication_index(), tf.float32)
        return ipu.ops.cross_replica_ops.cross_replica_sum(index + 1)

    with ipu.scopes.ipu_scope(IPU):
        (total,) = ipu.ipu_compiler.compile(step)
    with v1.Session() as session:
        assert session.run(total) == 3
