"""Collectives among the plain ops of a session's graph: all IPUs of the device take part, each with the same inputs."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.plugin.poplar.ops import gen_poputil_ops
from tensorflow.python import ipu

pytestmark = pytest.mark.one_version

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
    """A program of its own would see the value of one replica; a device of one IPU has only that."""
    with ipu.scopes.ipu_scope(IPU):
        value = 2 * own() + 1
        total = ipu.ops.cross_replica_ops.cross_replica_sum(value)
    ipus(1)
    with v1.Session() as session:
        np.testing.assert_array_equal(*session.run([value, total]))
    ipus(2)
    with (
        v1.Session() as session,
        pytest.raises(tf.errors.OpError, match="different value in each.*ipu_compiler.compile"),
    ):
        session.run(total)


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


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_plain_enqueue_sends_from_each_replica(ipus, count):
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with ipu.scopes.ipu_scope(IPU):
        x = v1.placeholder(tf.float32, VALUES.shape)
        index = ipu.ops.replication_ops.replication_index()
        scattered = ipu.ops.reduce_scatter_op.reduce_scatter(x, count)
        enqueue = outfeed.enqueue({"x": x, "own": tf.cast(index, tf.float32) + 2 * x, "scattered": (scattered,)})
    dequeued = outfeed.dequeue()
    ipus(count)
    with v1.Session() as session:
        for _ in range(2):
            session.run(enqueue, {x: VALUES})
        found = session.run(dequeued)
    own = np.arange(count)[:, None] + 2 * VALUES
    expected = {"x": np.tile(VALUES, [count, 1]), "own": own, "scattered": count * VALUES.reshape(count, -1)}
    for name, values in expected.items():
        got = found[name][0] if name == "scattered" else found[name]
        each = values[0] if count == 1 else values
        np.testing.assert_allclose(got, np.stack([each, each]), err_msg=name)


def test_each_replica_rounds_what_it_enqueues_by_itself(ipus):
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.floating_point_behaviour.esr = ipu.config.StochasticRoundingBehaviour.ON
    config.configure_ipu_system()
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with ipu.scopes.ipu_scope(IPU):
        enqueue = outfeed.enqueue(tf.cast(v1.placeholder(tf.float32, [1000], name="x"), tf.float16))
    dequeued = outfeed.dequeue()
    found = []
    with v1.Session() as session:
        for identical in (False, True, True):
            ipu.utils.reset_ipu_seed(1, experimental_identical_replicas=identical)
            session.run(enqueue, {"x:0": np.full(1000, 0.1)})
            found.extend(session.run(dequeued))
    down, up = np.float16(0.1), np.nextafter(np.float16(0.1), np.float16(1))
    assert {*np.unique(found)} == {down, up}
    assert (found[0][0] != found[0][1]).any()
    np.testing.assert_array_equal(found[1][0], found[1][1])
    np.testing.assert_array_equal(found[1], found[2])


def test_random_numbers_are_not_enqueued_by_several(ipus):
    """They are drawn once, for all fetches of a step: each replica has its own on a real system."""
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with ipu.scopes.ipu_scope(IPU):
        value = 2 * tf.random.uniform([3])
        enqueue = outfeed.enqueue(value)
    dequeued = outfeed.dequeue()
    ipus(1)
    with v1.Session() as session:
        sent, _ = session.run([value, enqueue])
        np.testing.assert_array_equal(session.run(dequeued), [sent])
    ipus(2)
    with v1.Session() as session, pytest.raises(tf.errors.OpError, match="RandomUniform.*Build both in a function"):
        session.run(enqueue)
