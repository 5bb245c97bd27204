"""Replicas that cannot be: ones that wait for each other, of different shapes, too many or too few."""

import numpy as np
import pytest
import tensorflow as tf
from replicated import compiled, configure, sent, summed_on
from tf_ipu_shim.ipu import ipu_infeed_queue
from tf_ipu_shim.ipu.ops import all_to_all_op, cross_replica_ops, reduce_scatter_op, replication_ops, within_replica_ops

from tf_ipu_shim import ipu

v1 = tf.compat.v1
pytestmark = [pytest.mark.usefixtures("mostly_in_a_graph"), pytest.mark.one_version]


def test_a_collective_that_a_replica_never_reaches():
    """Its run ends instead: the one that waits is told at once whom it waits for."""
    configure(2)

    def model():
        index = tf.cast(replication_ops.replication_index(), tf.float32)
        return tf.cond(index > 0.5, lambda: cross_replica_ops.cross_replica_sum(index, name="lonely"), lambda: index)

    result = compiled(model)
    with v1.Session() as session:
        for _ in range(2):
            with pytest.raises(
                tf.errors.FailedPreconditionError,
                match="lonely.*replica 1 waits for replica 0, which has ended its run",
            ):
                session.run(result)


def test_replicas_that_wait_at_different_collectives(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_COLLECTIVE_TIMEOUT", "0.5")
    configure(2)

    def model():
        index = tf.cast(replication_ops.replication_index(), tf.float32)
        return tf.cond(
            index > 0.5,
            lambda: cross_replica_ops.cross_replica_sum(index, name="here"),
            lambda: cross_replica_ops.cross_replica_sum(index, name="there"),
        )

    result = compiled(model)
    with v1.Session() as session:
        with pytest.raises(
            tf.errors.DeadlineExceededError, match=r"here.*waits for replica \d, which has not come to it in 0.5 s \("
        ):
            session.run(result)


def test_a_collective_whose_result_nobody_uses():
    configure(2)

    def body(x):
        all_to_all_op.all_gather(x, 2)
        return tf.tanh(x + 1.0)

    result = compiled(lambda: ipu.loops.repeat(3, body, [tf.constant([0.0, 1.0])]))
    expected = np.array([0.0, 1.0], np.float32)
    for _ in range(3):
        expected = np.tanh(expected + 1)
    with v1.Session() as session:
        np.testing.assert_allclose(session.run(result)[0], expected, rtol=1e-6)


def test_replicas_of_different_shapes_are_refused():
    configure(2)
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(np.arange(100, dtype=np.int32)))

    def step(total, _):
        return total + cross_replica_ops.cross_replica_sum(tf.ones([2]))

    wrong_factor = compiled(lambda: all_to_all_op.all_gather(tf.ones([2]), 4))
    wrong_group = compiled(lambda: cross_replica_ops.cross_replica_sum(tf.ones([2]), replica_group_size=3))
    right = compiled(lambda: ipu.loops.repeat(2, step, [tf.zeros([2])], infeed))
    with v1.Session() as session:
        session.run(infeed.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="replication_factor of 4.*2 replicas"):
            session.run(wrong_factor)
        with pytest.raises(tf.errors.InvalidArgumentError, match="replica group size .got 3. does not evenly divide"):
            session.run(wrong_group)
        assert session.run(right)[0].tolist() == [4, 4]


@pytest.mark.parametrize("combined", [cross_replica_ops.cross_replica_sum, cross_replica_ops.cross_replica_mean])
def test_groups_larger_than_the_only_replica_are_refused(combined):
    """A mean would be a third of what the one replica has."""
    configure(1)
    wrong = compiled(lambda: combined(tf.ones([2]), replica_group_size=3))
    right = compiled(lambda: combined(tf.ones([2]), replica_group_size=np.int64(1)))
    with v1.Session() as session:
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"replica group size \(got 3\) does not evenly divide .* replicas \(got 1\)",
        ):
            session.run(wrong)
        assert session.run(right)[0].tolist() == [1, 1]
    with pytest.raises(TypeError, match="replica_group_size must be an integer, not 1.5"):
        combined(tf.ones([2]), replica_group_size=1.5)
    with pytest.raises(ValueError, match="replica_group_size is -1; expected a number of replicas, or 0"):
        combined(tf.ones([2]), replica_group_size=-1)


def test_too_few_ipus_for_whole_replicas(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 shards.*7 IPUs.*multiple of 2"):
        sent(summed_on(2), 7)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: reduce_scatter_op.reduce_scatter(tf.ones([2, 2]), 2), ValueError, "rank 1"),
        (lambda: reduce_scatter_op.reduce_scatter(tf.ones([2]), 2, "ADD"), ValueError, "Unknown collective.*'ADD'"),
        (lambda: all_to_all_op.all_to_all(tf.ones([3]), 0, 0, 2), ValueError, "2 equal parts"),
        (
            lambda: all_to_all_op.all_to_all(tf.ones([2]), 0, 1, 2),
            ValueError,
            "concat_dimension=1.* does not have this axis",
        ),
        (lambda: all_to_all_op.all_to_all(tf.ones([2]), 0, 0, 0), ValueError, "replication_factor=0"),
        (lambda: all_to_all_op.all_gather(tf.ones([2]), 0), ValueError, "replication_factor=0"),
        (lambda: all_to_all_op.all_gather(tf.ones([2]), 1.5), TypeError, "replication_factor of all_gather .* not 1.5"),
        (lambda: reduce_scatter_op.reduce_scatter(tf.ones([2]), 0), ValueError, "replication_factor=0"),
        (
            lambda: cross_replica_ops.cross_replica_mean(tf.ones([2], tf.int32)),
            TypeError,
            "DataType int32 not in list of allowed values: float16, float32",
        ),
        (lambda: cross_replica_ops.cross_replica_sum(tf.ones([3]), -1), ValueError, "or 0 for all"),
        (lambda: within_replica_ops.all_gather([tf.ones([3])]), ValueError, "at least two"),
        (lambda: within_replica_ops.all_reduce([tf.ones([3]), tf.zeros([3])], "SUM"), ValueError, "Unknown collective"),
        (
            lambda: within_replica_ops.all_reduce([tf.ones([3]), tf.ones([2])], "COLLECTIVE_OP_ADD"),
            ValueError,
            "one shape",
        ),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()
