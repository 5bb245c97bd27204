"""Threads that run one program: `strategy.run`, sessions, with and without feeds. No element is lost or taken twice."""

import concurrent.futures

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, ipu_strategy, loops, scopes

v1 = tf.compat.v1
THREADS, RUNS, ITERATIONS = 8, 10, 5


def in_threads(work):
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        return [result for results in pool.map(work, range(THREADS)) for result in results]


def numbers():
    return tf.data.Dataset.range(100_000).map(lambda number: tf.cast(number, tf.float32))


@pytest.fixture(params=[1, 2])
def replicas(ipus, request):
    ipus(request.param)
    return request.param


def assert_each_once(taken, replicas):
    expected = np.arange(THREADS * RUNS * ITERATIONS * replicas, dtype=np.float32)
    np.testing.assert_array_equal(np.sort(np.ravel(taken)), expected)


def test_strategy_run(replicas):
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        ones = tf.Variable(np.ones((3, 2), "f"))
    step = tf.function(lambda x: 2.0 * tf.matmul(x, ones), jit_compile=True)

    def work(thread):
        values = [100 * thread + run for run in range(RUNS)]
        with strategy.scope():
            return [(value, strategy.run(step, args=(tf.fill((4, 3), float(value)),)).numpy()) for value in values]

    for value, got in in_threads(work):
        np.testing.assert_array_equal(got, np.full((4, 2), 6 * value, "f"))


def test_strategy_run_with_feeds(replicas):
    strategy = ipu_strategy.IPUStrategy()
    infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(numbers()), ipu_outfeed_queue.IPUOutfeedQueue()

    @tf.function(jit_compile=True)
    def step():
        loops.repeat(ITERATIONS, outfeed.enqueue, [], infeed)

    def work(thread):
        with strategy.scope():
            return [strategy.run(step) for _ in range(RUNS)]

    in_threads(work)
    assert_each_once(outfeed.dequeue(), replicas)


def test_programs_that_share_their_feeds(replicas):
    """Their runs overlap, and their replicas do not advance together."""
    strategy = ipu_strategy.IPUStrategy()
    infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(numbers()), ipu_outfeed_queue.IPUOutfeedQueue()

    def work(thread):
        @tf.function(jit_compile=True)
        def step():
            loops.repeat(ITERATIONS * RUNS, outfeed.enqueue, [], infeed)

        with strategy.scope():
            return [strategy.run(step)]

    in_threads(work)
    assert_each_once(outfeed.dequeue(), replicas)


def test_one_iterator_of_a_strategy(ipus):
    ipus(1)
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        iterator = iter(numbers())
    step = tf.function(lambda elements: next(elements), jit_compile=True)

    def work(thread):
        with strategy.scope():
            return [strategy.run(step, args=(iterator,)).numpy() for _ in range(RUNS)]

    np.testing.assert_array_equal(sorted(in_threads(work)), np.arange(THREADS * RUNS))


def test_session(replicas):
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [4, 3])
        with scopes.ipu_scope("/device:IPU:0"):
            ones = v1.get_variable("ones", [3, 2], initializer=v1.ones_initializer(), use_resource=True)
            (compiled,) = ipu_compiler.compile(lambda x: tf.matmul(x, ones), [fed])
            plain = tf.reduce_sum(fed)
        session.run(v1.global_variables_initializer())

        def work(thread):
            values = [100 * thread + run for run in range(RUNS)]
            return [(value, *session.run([compiled, plain], {fed: np.full((4, 3), value)})) for value in values]

        for value, got, total in in_threads(work):
            np.testing.assert_array_equal(got, np.full((4, 2), 3 * value, "f"))
            assert total == 12 * value


def test_session_with_feeds(replicas):
    with tf.Graph().as_default(), v1.Session() as session:
        infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(numbers()), ipu_outfeed_queue.IPUOutfeedQueue()

        def body(total, number):
            return total + number, outfeed.enqueue(number)

        with scopes.ipu_scope("/device:IPU:0"):
            program = ipu_compiler.compile(lambda: loops.repeat(ITERATIONS, body, [0.0], infeed))
        taken = outfeed.dequeue()
        session.run(infeed.initializer)
        totals = in_threads(lambda thread: [session.run(program)[0] for _ in range(RUNS)])
        elements = session.run(taken)
    assert_each_once(elements, replicas)
    if replicas == 1:
        assert sum(totals) == sum(range(THREADS * RUNS * ITERATIONS))
