"""Batch normalisation over groups of replicas, against stock TensorFlow with all samples of a group in one batch."""

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, scopes

from tf_ipu_shim import ipu

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
OPTION = "distributed_batch_norm_replica_group_size"
BATCH, CHANNELS = 3, 2
SCALE, OFFSET = np.array([0.5, 2.0], "f"), np.array([1.0, -1.0], "f")
SLOPES = np.random.RandomState(5).rand(BATCH, 4, 4, CHANNELS).astype("f")


def configure(replicas, group):
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = replicas
    setattr(config.norms.experimental, OPTION, group)
    config.configure_ipu_system()


def normalised(x, slopes, scale, offset, **options):
    """What a batch normalisation gives, its statistics, and the gradients of what it gives times `slopes`."""
    y, mean, variance = v1.nn.fused_batch_norm(x, scale, offset, epsilon=0.01, is_training=True, **options)
    loss = tf.reduce_sum(tf.cast(y, tf.float32) * tf.cast(slopes, tf.float32))
    return [y, mean, variance, *tf.gradients(loss, [x, scale, offset])]


def on_replicas(replicas, group, values, **options):
    """`normalised` on each replica: results with an axis of replicas."""
    configure(replicas, group)
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(values).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def body(x):
            slopes = tf.constant(SLOPES, x.dtype)
            return outfeed.enqueue(normalised(x, slopes, tf.constant(SCALE), tf.constant(OFFSET), **options))

        with scopes.ipu_scope("/device:IPU:0"):
            program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(1, body, [], infeed))
        dequeued = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(program)
        return [part[0] for part in session.run(dequeued)]


def in_one_batch(values, **options):
    """The same by stock TensorFlow for groups of batches: `values` has axes [group, replica, batch, ...]."""
    found = []
    with tf.Graph().as_default(), v1.Session() as session, tf.device("/device:CPU:0"):
        for batches in values:
            x = tf.constant(batches.reshape(-1, *batches.shape[2:]))
            slopes = np.concatenate([SLOPES] * len(batches))
            found.append(session.run(normalised(x, slopes, tf.constant(SCALE), tf.constant(OFFSET), **options)))
    return found


@pytest.mark.parametrize(("replicas", "group"), [(2, 2), (4, 2), (4, 4)])
def test_a_group_normalises_as_one_batch(execution_mode, replicas, group):
    values = np.random.RandomState(1).normal(3.0, 2.0, (replicas, BATCH, 4, 4, CHANNELS)).astype("f")
    y, mean, variance, of_x, of_scale, of_offset = on_replicas(replicas, group, values)
    for number, expected in enumerate(in_one_batch(values.reshape(-1, group, *values.shape[1:]))):
        own = slice(number * group, (number + 1) * group)
        for got, wanted in ((y, expected[0]), (of_x, expected[3])):
            np.testing.assert_allclose(got[own].reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)
        for got, wanted in ((mean, expected[1]), (variance, expected[2])):
            np.testing.assert_allclose(got[own], [wanted] * group, rtol=1e-5)
        for got, wanted in ((of_scale, expected[4]), (of_offset, expected[5])):
            np.testing.assert_allclose(got[own].sum(0), wanted, rtol=1e-4, atol=1e-4)


def test_halves(execution_mode):
    values = np.random.RandomState(2).rand(2, BATCH, 4, 4, CHANNELS).astype(np.float16)
    y, mean, variance, of_x, _, _ = on_replicas(2, 2, values)
    (expected,) = in_one_batch(values[None])
    assert y.dtype == of_x.dtype == np.float16 and mean.dtype == np.float32
    np.testing.assert_allclose(y.reshape(expected[0].shape), expected[0], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(mean, [expected[1]] * 2, rtol=1e-5)
    np.testing.assert_allclose(variance, [expected[2]] * 2, rtol=1e-4)


def test_moving_averages(execution_mode):
    """Those of TensorFlow 2.15's op itself, which moves them by a part of the difference."""
    options = {"exponential_avg_factor": 0.25, "mean": np.float32([1, 2]), "variance": np.float32([3, 4])}
    values = np.random.RandomState(3).rand(2, BATCH, 4, 4, CHANNELS).astype("f")
    _, mean, variance, *_ = on_replicas(2, 2, values, **options)
    (expected,) = in_one_batch(values[None], **options)
    np.testing.assert_allclose(mean, [expected[1]] * 2, rtol=1e-5)
    np.testing.assert_allclose(variance, [expected[2]] * 2, rtol=1e-5)


@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2"])
def test_ops_of_older_graphs(monkeypatch, op):
    values = np.random.RandomState(1).normal(3.0, 2.0, (2, BATCH, 4, 4, CHANNELS)).astype("f")
    (expected,) = in_one_batch(values[None])

    def older(x, scale, offset, **options):
        return getattr(tf.raw_ops, op)(x=x, scale=scale, offset=offset, mean=[], variance=[], **options)[:3]

    monkeypatch.setattr(v1.nn, "fused_batch_norm", older)
    y, mean, variance, of_x, *_ = on_replicas(2, 2, values)
    for found, wanted in ((y, expected[0]), (of_x, expected[3])):
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
    for found, wanted in ((mean, expected[1]), (variance, expected[2])):
        np.testing.assert_allclose(found, [wanted] * 2, rtol=1e-4)


def test_without_groups_each_replica_has_its_own():
    values = np.random.RandomState(4).rand(2, BATCH, 4, 4, CHANNELS).astype("f")
    _, mean, *_ = on_replicas(2, 1, values)
    np.testing.assert_allclose(mean, values.mean((1, 2, 3)), rtol=1e-5)


def test_groups_that_the_replicas_do_not_make():
    values = np.zeros((4, BATCH, 4, 4, CHANNELS), "f")
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"4 replicas cannot be put into groups of 3. .*{OPTION}"):
        on_replicas(4, 3, values)


def test_layers_of_keras_share_them():
    """Two replicas with a batch each, and stock Keras with both in one: what training leaves of the statistics."""
    values = np.random.RandomState(6).rand(4, BATCH, 5).astype("f")

    def trained(batch, steps):
        keras = tf.keras
        layer = keras.layers.BatchNormalization(momentum=0.5, fused=None)
        model = keras.Sequential([keras.Input((1, 1, 5), batch_size=batch), layer, keras.layers.Flatten()])
        model.compile("sgd", "mse", steps_per_execution=steps)
        x = values.reshape(-1, 1, 1, 5)
        model.fit(x, np.zeros((len(x), 5), "f"), batch_size=batch, epochs=1, shuffle=False, verbose=0)
        return [layer.moving_mean.numpy(), layer.moving_variance.numpy()]

    expected = trained(2 * BATCH, 1)
    configure(2, 2)
    with ipu.ipu_strategy.IPUStrategy().scope():
        got = trained(BATCH, 4)
    for one, other in zip(got, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5)
