"""Iterators, infeeds and outfeeds under IPUStrategyV1, and custom training loops against the same loop on the CPU."""

import functools
import gc
import itertools
import pathlib
import threading
import time
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import function, ops
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue, IPUIterator, IPUOwnedIterator
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue

from tf_ipu_shim import ipu
from tf_ipu_shim.frontend.tracing import tracing

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture
def strategy():
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    with strategy.scope():
        yield strategy


def pairs(count):
    numbers = tf.data.Dataset.range(count).map(lambda i: tf.cast(i, tf.float32))
    return numbers.map(lambda x: (x, {"double": 2 * x}))


def test_iterators_of_the_scope_feed_loops(strategy):
    traced = []
    outfeed = IPUOutfeedQueue()
    total = tf.Variable(0.0)

    @tf.function(jit_compile=True)
    def function(iterator, count):
        traced.append(count)
        for _ in tf.range(count):
            x, others = next(iterator)
            total.assign_add(x)
            outfeed.enqueue({"total": total, **others})
        return total.read_value()

    iterator = iter(pairs(10))
    assert isinstance(iterator, IPUIterator) and isinstance(iterator, IPUOwnedIterator)
    assert isinstance(iterator, tf.data.Iterator)
    assert iterator.element_spec[0] == tf.TensorSpec([], tf.float32)
    assert float(strategy.run(function, args=[iterator, tf.constant(3)])) == 0 + 1 + 2
    assert float(strategy.run(function, args=[iterator, tf.constant(2)])) == 3 + 3 + 4
    another = iter(pairs(10))
    assert float(strategy.run(function, args=[another, tf.constant(2)])) == 10 + 0 + 1
    assert len(traced) == 1, "a new iterator is no new function"
    results = outfeed.dequeue()
    np.testing.assert_array_equal(results["total"], [0, 1, 3, 6, 10, 10, 11])
    np.testing.assert_array_equal(results["double"], [0, 2, 4, 6, 8, 0, 2])


@pytest.mark.parametrize("name", ["trained", "tmp"])
def test_a_variable_that_begins_in_a_loop_is_the_last_iterations(strategy, name):
    """Autograph calls such a loop's body once more, in a graph called "tmp" that it throws away."""
    outfeed = IPUOutfeedQueue()

    def function(iterator, count):
        for _ in tf.range(count):
            x, _ = next(iterator)
            doubled = 2 * x
            outfeed.enqueue(doubled)
        return doubled

    function.__name__ = name
    compiled = tf.function(function, jit_compile=True)
    assert float(strategy.run(compiled, args=[iter(pairs(10)), tf.constant(3)])) == 4
    np.testing.assert_array_equal(outfeed.dequeue(), [0, 2, 4])


def test_a_function_that_is_called_tmp_is_kept(graph):
    """Graphs of TensorFlow 1's functions know no signature."""
    kept = []

    @function.Defun(tf.float32)
    def tmp(x):
        kept.append(tracing.may_run(ops.get_default_graph()))
        return x

    tmp(tf.constant(1.0))
    assert kept == [True]


def test_a_guarded_enqueue_is_in_each_trace_of_a_function(strategy):
    """TensorFlow traces a function again whose first trace made variables, and for other shapes."""
    outfeed, optimizer = IPUOutfeedQueue(), tf.keras.optimizers.SGD(0.5, momentum=0.5)
    weight = tf.Variable(1.0)

    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * x)
        optimizer.minimize(loss, [weight], tape=tape)
        if not outfeed.enqueued:
            outfeed.enqueue(loss)

    strategy.run(step, [tf.constant([1.0, 2.0])])  # its slots are made in the first trace
    strategy.run(step, [tf.constant([4.0])])  # weight: 1 - 0.5 * 3 = -0.5
    assert outfeed.enqueued
    np.testing.assert_array_equal(outfeed.dequeue(), [3.0, -2.0])


def test_an_infeed_s_spec_makes_another_over_the_same_elements(strategy):
    infeed = IPUInfeedQueue(tf.data.Dataset.range(6).map(lambda i: tf.cast(i, tf.float32)))
    with pytest.raises(RuntimeError, match="Spec for IPUInfeedQueue"):
        _ = infeed._type_spec
    _ = infeed.initializer
    same = IPUInfeedQueue._from_type_spec(infeed._type_spec)

    @tf.function(jit_compile=True)
    def first(queue):
        return ipu.loops.repeat(2, lambda total, x: total + x, [0.0], queue)

    sums = [float(strategy.run(first, args=[queue])) for queue in (infeed, same)]
    assert sums == [0 + 1, 2 + 3]
    for what in ("initializer", "deleter"):
        with pytest.raises(RuntimeError, match="IPUInfeedQueue created from spec"):
            getattr(same, what)


def test_an_iterator_that_is_freed_is_at_its_end(strategy):
    iterator = IPUIterator(tf.data.Dataset.from_tensors(2.0).repeat())
    function = tf.function(lambda iterator: next(iterator), jit_compile=True)
    assert float(strategy.run(function, args=[iterator])) == 2.0
    _ = iterator._infeed_queue.deleter
    with pytest.raises(tf.errors.OutOfRangeError):
        strategy.run(function, args=[iterator])


def test_an_iterator_feeds_replicas():
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    with strategy.scope():
        outfeed, total = IPUOutfeedQueue(), tf.Variable(0.0)

        @tf.function(jit_compile=True)
        def function(iterator):
            for _ in tf.range(3):
                x = next(iterator)
                outfeed.enqueue(x)
                total.assign_add(ipu.cross_replica_ops.cross_replica_sum(x))
            return total.read_value()

        iterator = iter(tf.data.Dataset.range(20).map(lambda i: tf.cast(i, tf.float32)))
        assert float(strategy.run(function, args=[iterator])) == np.arange(6).sum()
        assert float(strategy.run(function, args=[iterator])) == np.arange(12).sum()
        np.testing.assert_array_equal(outfeed.dequeue(), np.arange(12).reshape(6, 2))
    ipu.config.reset_ipu_configuration()


@pytest.mark.parametrize("jit_compile", [True, None])
def test_iterators_may_be_captured_in_the_scope(strategy, jit_compile):
    iterator = iter(pairs(4))

    @tf.function(jit_compile=jit_compile)
    def function():
        return next(iterator)[0] + iterator.get_next()[1]["double"]

    assert [float(function()), float(strategy.run(function))] == [0 + 2, 2 + 6]
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        strategy.run(function)


def test_an_iterator_without_a_scope_after_a_session_infeed(execution_mode):
    """After that, TensorFlow does not let what takes elements on an IPU and the iterator on the host be one."""

    def numbers():
        return tf.data.Dataset.range(6).map(lambda i: tf.cast(i, tf.float32))

    with tf.Graph().as_default(), v1.Session() as session:
        infeed = IPUInfeedQueue(numbers())
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            total = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(4, lambda total, x: total + x, [0.0], infeed))
        session.run(infeed.initializer)
        assert session.run(total) == [0 + 1 + 2 + 3]
    strategy, iterator = ipu.ipu_strategy.IPUStrategyV1(), IPUIterator(numbers())
    taken = [float(strategy.run(tf.function(lambda: 2.0 * next(iterator)))) for _ in range(3)]
    assert taken == [0.0, 2.0, 4.0]
    ipu.config.reset_ipu_configuration()


def test_iterators_of_the_scope_are_not_for_eager_use(strategy):
    iterator = iter(pairs(3))
    for take in (lambda: next(iterator), iterator.get_next, lambda: list(pairs(3))):
        with pytest.raises(RuntimeError, match="Accessing dataset elements can not be accessed"):
            take()
    with pytest.raises(NotImplementedError, match=r"does not support get_next_as_optional\(\)"):
        iterator.get_next_as_optional()
    with pytest.raises(ValueError, match="Output shape .* is not fully defined.*drop_remainder=True"):
        iter(tf.data.Dataset.range(5).batch(2))


def test_what_iterators_are_made_from(strategy):
    dataset = pairs(3)
    iterator = IPUIterator(dataset, device_ordinal=0, prefetch_depth=2)
    same = IPUIterator(infeed_spec=iterator.infeed_spec, element_spec=iterator.element_spec)
    function = tf.function(lambda iterator: next(iterator)[0])
    assert [float(strategy.run(function, args=[i])) for i in (iterator, same, iterator)] == [0, 1, 2]
    for wrong in (
        {},
        {"infeed_spec": iterator.infeed_spec},
        {"dataset": dataset, "element_spec": dataset.element_spec},
    ):
        with pytest.raises(ValueError, match="`dataset`"):
            IPUIterator(**wrong)
    with pytest.raises(TypeError, match="unknown"):
        IPUIterator(dataset, unknown=1)
    with pytest.raises(ValueError, match="prefetch_depth must be less than 256"):
        IPUIterator(dataset, prefetch_depth=256)
    gone = weakref.ref(iter(dataset))
    gc.collect()
    assert gone() is None


def test_stock_iterators_stay_what_they_are():
    dataset = tf.data.Dataset.range(3)
    assert [int(x) for x in dataset] == [0, 1, 2]
    with ipu.ipu_strategy.IPUStrategyV1(enable_dataset_iterators=False).scope():
        assert [int(x) for x in dataset] == [0, 1, 2]
    with tf.distribute.OneDeviceStrategy("/device:CPU:0").scope():
        assert [int(x) for x in dataset] == [0, 1, 2]


def test_elements_for_the_ipu_are_not_pythons(strategy):
    with strategy.scope():
        iterator = iter(tf.data.Dataset.from_tensors(1.5).repeat())
    with pytest.raises(RuntimeError, match=r"inside a tf.function.* For a script of SDK 2.1 or older.*--sdk 2.1"):
        next(iterator)


def test_distributed_datasets_are_taken_eagerly(strategy):
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(6).batch(2, drop_remainder=True))
    function = tf.function(lambda x: tf.reduce_sum(x))
    assert [int(strategy.run(function, args=[x])) for x in dataset] == [1, 5, 9]
    dataset = strategy.distribute_datasets_from_function(lambda context: tf.data.Dataset.range(2).batch(1))
    assert [int(strategy.run(function, args=[x])) for x in dataset] == [0, 1]


def test_what_is_no_dataset_is_not_distributed(strategy):
    with pytest.raises(TypeError, match="can only distribute a tf.data.Dataset, not a int"):
        strategy.experimental_distribute_dataset(3)


def test_distributed_datasets_are_as_long_as_those_given(strategy):
    four = tf.data.Dataset.range(4)
    for distributed in (strategy.distribute_datasets_from_function, strategy.experimental_distribute_dataset):
        given = (lambda data: lambda context: data) if "function" in distributed.__name__ else lambda data: data
        assert len(distributed(given(four))) == 4
        assert distributed(given(four.take(0)))  # as stock TensorFlow's datasets are
        for data, message in (
            (four.repeat(), "is infinite"),
            (four.filter(lambda x: x > 1), "is unknown to TensorFlow"),
        ):
            assert distributed(given(data))
            with pytest.raises(TypeError, match=message):
                len(distributed(given(data)))


def test_queues_take_the_strategy_s_device(ipus):
    ipus([1, 1])
    second = ipu.ipu_strategy.IPUStrategyV1("/device:IPU:1")
    with second.scope():
        assert IPUInfeedQueue(pairs(2))._device_ordinal == IPUOutfeedQueue()._device_ordinal == 1
        assert IPUOutfeedQueue(device_ordinal=0)._device_ordinal == 0
    assert IPUInfeedQueue(pairs(2))._device_ordinal == IPUOutfeedQueue()._device_ordinal == 0


def test_infeeds_and_outfeeds_of_ipu_loops(strategy):
    infeed, outfeed, last = IPUInfeedQueue(pairs(10)), IPUOutfeedQueue(), IPUOutfeedQueue(IPUOutfeedMode.LAST)

    @tf.function(jit_compile=True)
    def function(queue):
        def body(total, x, others):
            return total + x, outfeed.enqueue(total), last.enqueue(others)

        return ipu.loops.repeat(4, body, [10.0], queue)

    assert float(strategy.run(function, args=[infeed])) == 10 + 0 + 1 + 2 + 3
    np.testing.assert_array_equal(outfeed.dequeue(), [10, 10, 11, 13])
    assert float(last.dequeue()["double"]) == 6
    assert float(strategy.run(function, args=[infeed])) == 10 + 4 + 5 + 6 + 7
    assert [float(x) for x in outfeed] == [10, 14, 19, 25]


def test_outfeeds_are_read_while_another_thread_runs(strategy):
    outfeed = IPUOutfeedQueue()
    release = threading.Event()

    def hold(i):
        if i == 3:
            assert release.wait(60)
        return i

    # The dataset is made without prefetching beyond the third element, so that the function waits for it.
    held = tf.data.Dataset.range(6).map(
        lambda i: tf.ensure_shape(tf.numpy_function(hold, [tf.cast(i, tf.int32)], tf.int32), [])
    )
    iterator = IPUIterator(held)

    @tf.function(jit_compile=True)
    def function(iterator):
        for _ in tf.range(6):
            outfeed.enqueue(next(iterator))

    # A trace before the thread starts, so that the outfeed knows what is sent to it.
    function.get_concrete_function(iterator)
    thread = threading.Thread(target=strategy.run, args=(function, [iterator]))
    thread.start()
    seen = []
    while len(seen) < 3:
        seen += outfeed.dequeue().numpy().tolist()
    assert seen == [0, 1, 2] and thread.is_alive()
    release.set()
    thread.join(60)
    assert outfeed.dequeue().numpy().tolist() == [3, 4, 5]


def images():
    random = np.random.RandomState(7)
    x, y = random.rand(32, 8, 8).astype("f"), random.randint(0, 4, [32]).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8, drop_remainder=True)


def model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(8, 8)),
            tf.keras.layers.Dense(16, "relu", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1)),
            tf.keras.layers.Dense(4, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2)),
        ]
    )


def train_step(network, optimizer, x, y):
    with tf.GradientTape() as tape:
        logits = network(x, training=True)
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))
    gradients = tape.gradient(loss, network.trainable_variables)
    optimizer.apply_gradients(zip(gradients, network.trainable_variables))
    return loss


OPTIMIZERS = {
    "legacy momentum": lambda: tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9),
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_custom_loop_trains_a_network_as_the_cpu_does(name):
    steps = 12
    network, optimizer = model(), OPTIMIZERS[name]()
    expected = [float(train_step(network, optimizer, x, y)) for x, y in images().take(steps)]
    expected_weights = network.get_weights()
    assert expected[-1] < expected[0]

    strategy = ipu.ipu_strategy.IPUStrategyV1()
    with strategy.scope():
        network, optimizer = model(), OPTIMIZERS[name]()
        iterator, outfeed = iter(images()), IPUOutfeedQueue()

        @tf.function(jit_compile=True)
        def train(iterator, count):
            for _ in tf.range(count):
                outfeed.enqueue(train_step(network, optimizer, *next(iterator)))

        for _ in range(3):
            strategy.run(train, args=[iterator, steps // 3])
    np.testing.assert_allclose(outfeed.dequeue(), expected, rtol=1e-4)
    for one, other in zip(network.get_weights(), expected_weights):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    ipu.config.reset_ipu_configuration()


def test_a_compiled_function_with_an_outfeed_in_another_s_loop(strategy):
    outfeed = IPUOutfeedQueue()

    @tf.function(jit_compile=True)
    def inner(n):
        double = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x + n), (0, 0))[1]
        outfeed.enqueue(double)
        return double + 1

    @tf.function(jit_compile=True)
    def outer(count):
        return tf.while_loop(lambda i, _: i < count, lambda i, n: (i + 1, inner(n)), (0, 1))[1]

    assert int(strategy.run(outer, [tf.constant(3)])) == 15
    np.testing.assert_array_equal(outfeed.dequeue(), [2, 6, 14])


def test_a_pipeline_takes_small_known_values_as_constants():
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    one = tf.constant(1.0)
    infeed, outfeed = IPUInfeedQueue(tf.data.Dataset.from_tensors([3.0, 4.0]).repeat()), IPUOutfeedQueue()
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    with strategy.scope():

        @tf.function(jit_compile=True)
        def step():
            stages = [lambda x: x + one, lambda x: x * 2]
            ipu.pipelining_ops.pipeline(stages, 2, infeed_queue=infeed, outfeed_queue=outfeed, device_mapping=[0, 1])

        strategy.run(step)
    np.testing.assert_array_equal(outfeed.dequeue(), [[8.0, 10.0]] * 2)
    ipu.config.reset_ipu_configuration()


@pytest.mark.slow
def test_an_infeed_that_is_deleted_is_free_to_begin_anew(strategy):
    """What its dataset held goes, its threads too."""

    def threads():
        return len(list(pathlib.Path("/proc/self/task").iterdir()))

    counts = []
    for _ in range(4):
        mapped = tf.data.Dataset.range(8, output_type=tf.int32).map(lambda x: x + 1, num_parallel_calls=4)
        infeed = IPUInfeedQueue(mapped)
        step = tf.function(functools.partial(ipu.loops.repeat, 3, lambda total, x: total + x, [0], infeed))
        for _ in range(2):
            assert int(strategy.run(step)) == 1 + 2 + 3
            _ = infeed.deleter
            with pytest.raises(tf.errors.FailedPreconditionError, match="again after infeed_queue.deleter"):
                strategy.run(step)
            _ = infeed.initializer
        _ = infeed.deleter
        del infeed, step
        gc.collect()
        counts.append(threads())
    assert counts[-1] <= counts[1] + 2


def test_a_restarted_infeed_does_not_wait_for_its_old_dataset(strategy):
    """TensorFlow's iterators take up to a minute to go: the thread that tunes a dataset may miss that it is to end."""
    free, waited = threading.Event(), []

    def numbers():
        try:
            yield from itertools.count()
        finally:
            waited.append(free.wait(30))

    infeed = IPUInfeedQueue(tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int32)))
    step = tf.function(functools.partial(ipu.loops.repeat, 3, lambda total, x: total + x, [0], infeed))
    for _ in range(2):
        assert int(strategy.run(step)) == 0 + 1 + 2
        _ = infeed.initializer
    assert waited == []
    free.set()
    _ = infeed.deleter
    deadline = time.monotonic() + 30
    while len(waited) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert waited == [True, True]
