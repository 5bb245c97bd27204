"""Pipelines, shards and converted Python control flow in functions that a strategy runs, against the CPU or NumPy."""

import inspect
import pathlib
import threading

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu.distributed import popdist_strategy
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedQueue
from tf_ipu_shim.ipu.ops import pipelining_ops

from tf_ipu_shim import ipu


@pytest.fixture
def strategy(ipus):
    ipus(2)
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    with strategy.scope():
        yield strategy


DATA = np.random.RandomState(0).rand(8, 2, 4).astype("f")
FIRST, SECOND = (np.random.RandomState(seed).rand(4, 4).astype("f") / 2 for seed in (1, 2))

OPTIMIZERS = {
    "legacy momentum": lambda: tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9),
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
}


def loss_of(x, first, second):
    return tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, first)), second) - 1.0))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_pipeline_trains_as_gradient_accumulation_on_the_cpu(strategy, name):
    count, repeats = 4, 3
    weights = [tf.Variable(FIRST), tf.Variable(SECOND)]
    optimizer = OPTIMIZERS[name]()
    infeed = IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(DATA).repeat())
    outfeed = IPUOutfeedQueue()

    def first_stage(x):
        return tf.tanh(tf.matmul(x, weights[0]))

    def second_stage(hidden):
        return tf.reduce_mean(tf.square(tf.matmul(hidden, weights[1]) - 1.0))

    def optimizer_function(loss):
        return pipelining_ops.OptimizerFunctionOutput(optimizer, loss, variables=weights)

    @tf.function(jit_compile=True)
    def train():
        pipelining_ops.pipeline(
            [first_stage, second_stage],
            gradient_accumulation_count=count,
            repeat_count=repeats,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer_function,
        )

    strategy.run(train)
    losses = tf.nest.flatten(outfeed.dequeue())[0]

    expected_losses, expected = on_the_cpu(OPTIMIZERS[name], count, repeats)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    for one, other in zip(weights, expected):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def on_the_cpu(make_optimizer, count, repeats):
    """The same training outside the strategy, in a thread of its own: its losses and the weights after it."""
    losses, result = [], []

    def train():
        weights, optimizer = [tf.Variable(FIRST), tf.Variable(SECOND)], make_optimizer()
        for execution in range(repeats):
            total = [tf.zeros([4, 4])] * 2
            for batch in range(count):
                with tf.GradientTape() as tape:
                    loss = loss_of(DATA[(execution * count + batch) % len(DATA)], *weights)
                losses.append(float(loss))
                total = [summed + gradient for summed, gradient in zip(total, tape.gradient(loss, weights))]
            optimizer.apply_gradients(zip(total, weights))
        result.extend(weight.numpy() for weight in weights)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    return losses, result


def test_shards_of_a_function_and_their_gradients(strategy):
    first, second = tf.Variable(FIRST), tf.Variable(SECOND)

    @tf.function
    def function(x):
        with tf.GradientTape() as tape:
            with ipu.scopes.ipu_shard(0):
                hidden = tf.tanh(tf.matmul(x, first))
            with ipu.scopes.ipu_shard(1):
                loss = tf.reduce_mean(tf.square(tf.matmul(hidden, second) - 1.0))
        return loss, tape.gradient(loss, [first, second])

    actual = strategy.run(function, args=[DATA[0]])
    with tf.GradientTape() as tape:
        weights = [tf.constant(FIRST), tf.constant(SECOND)]
        tape.watch(weights)
        loss = loss_of(DATA[0], *weights)
    expected = loss, tape.gradient(loss, weights)
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), actual, expected)


@pytest.mark.parametrize("make", [ipu.ipu_strategy.IPUStrategyV1, popdist_strategy.PopDistStrategy])
def test_replicas_of_a_custom_loop_share_only_gradients(ipus, make):
    ipus(2)
    data = np.arange(8, dtype=np.float32)
    strategy = make()
    with strategy.scope():
        iterator, outfeed = iter(tf.data.Dataset.from_tensor_slices(data).repeat()), IPUOutfeedQueue()
        weight = tf.Variable(1.0)
        optimizer = tf.keras.optimizers.legacy.SGD(0.01)

    @tf.function
    def train(iterator):
        for _ in tf.range(3):
            x = next(iterator)
            with tf.GradientTape() as tape:
                loss = weight * weight * x
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
            replica = tf.distribute.get_replica_context()
            outfeed.enqueue((x, replica.all_reduce("SUM", x), replica.all_reduce("MEAN", x)))

    strategy.run(train, args=[iterator])
    expected = 1.0
    for pair in data[:6].reshape(3, 2):
        expected -= 0.01 * 2 * expected * pair.sum()
    np.testing.assert_allclose(weight, expected, rtol=1e-5)
    taken, total, mean = outfeed.dequeue()
    np.testing.assert_array_equal(taken, data[:6].reshape(3, 2))
    np.testing.assert_array_equal(total, np.repeat([[1.0], [5.0], [9.0]], 2, 1))
    np.testing.assert_array_equal(mean, np.repeat([[0.5], [2.5], [4.5]], 2, 1))


def test_autograph_converts_only_the_script_s_functions(ipus):
    ipus(1)
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    infeed = IPUInfeedQueue(tf.data.Dataset.range(6).map(lambda x: tf.cast(x, tf.float32)))
    callers = []

    def body(count, x):
        callers.append([pathlib.Path(frame.filename).name for frame in inspect.stack()])
        if x > 2.0:
            count += 1.0
        return count

    @tf.function
    def function():
        return ipu.loops.repeat(6, body, [0.0], infeed)

    assert float(strategy.run(function)) == 3.0
    assert "loops.py" in callers[0], "the library's own code runs as it is written"
    plain = tf.function(lambda: ipu.loops.repeat(2, lambda x: 2 * x, [1.0]), autograph=False)
    assert float(strategy.run(plain)) == 4.0


def test_comparisons_of_constant_strings_are_folded_in_programs(ipus, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")
    ipus(1)
    words, others = ["a", "b", "c"], ["a", "x", "c"]

    @tf.function
    def function(x):
        tf.debugging.assert_equal(x.op.type, "Placeholder")
        chosen = tf.where(tf.equal(tf.constant(words), tf.constant(others)), x, 0.0)
        branch = tf.cond(
            x > 1.0, lambda: tf.cast(tf.not_equal(tf.constant("a"), words), tf.float32), lambda: tf.zeros(3)
        )
        tf.debugging.Assert(tf.logical_or(x < 5.0, tf.equal(tf.constant("a"), "b")), ["too large"])
        return chosen, branch

    strategy = ipu.ipu_strategy.IPUStrategyV1()
    chosen, branch = strategy.run(function, args=[tf.constant(2.0)])
    np.testing.assert_array_equal(chosen, np.where(np.equal(words, others), 2.0, 0.0))
    np.testing.assert_array_equal(branch, np.not_equal("a", words))
    with pytest.raises(tf.errors.InternalError, match="too large"):
        strategy.run(function, args=[tf.constant(6.0)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.image.resize_with_pad(x, 8, 8),
        lambda x: tf.reshape(x, [tf.cast(tf.sqrt(tf.cast(tf.shape(x)[1] * 4, tf.float32)), tf.int32), -1]),
    ],
    ids=["of an image", "of a root"],
)
def test_sizes_computed_with_floats(strategy, function):
    images = np.random.RandomState(2).rand(2, 9, 7, 3).astype("f")
    np.testing.assert_allclose(strategy.run(tf.function(function), [images]), function(images), rtol=1e-6)
