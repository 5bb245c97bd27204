"""Data that `TF_POPLAR_FLAGS` has made up: feeds, seeds and host embeddings, and what is moved then."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import (
    embedding_ops,
    ipu_compiler,
    ipu_infeed_queue,
    ipu_outfeed_queue,
    ipu_strategy,
    loops,
    scopes,
)

from tf_ipu_shim import errors, memory_report
from tf_ipu_shim.runtime import devices

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
ROWS = 512
ITERATIONS = 3
# A loop with a part on the host asks the IPU in each test whether it goes on: a byte each.
CONDITIONS = ITERATIONS + 1


@pytest.fixture(autouse=True)
def one_ipu(own_environment):
    configure(1)
    devices.load_library().reset_counters(0)


def elements():
    """The dataset's elements: 5, 6, 7, ... which nothing that is made up here looks like."""
    data = tf.data.Dataset.range(5, 100)
    return data.map(lambda x: (tf.fill([ROWS], tf.cast(x, tf.float32)), tf.fill([2], tf.cast(x, tf.int32))))


def fed(monkeypatch, flags, mode=ipu_outfeed_queue.IPUOutfeedMode.ALL, sends=lambda x, y: (x, y), dataset=elements):
    """What arrives in the outfeed, and the device's figures."""
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(dataset())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue(mode)

        def program():
            return loops.repeat(ITERATIONS, lambda *given: outfeed.enqueue(sends(*given)), infeed_queue=infeed)

        with scopes.ipu_scope(IPU):
            run = ipu_compiler.compile(program)
        taken = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)
        return session.run(taken), memory_report().devices[0]


def test_without_the_flags(monkeypatch):
    (x, y), device = fed(monkeypatch, "")
    assert x[:, 0].tolist() == [5, 6, 7] and y.tolist() == [[5, 5], [6, 6], [7, 7]]
    assert device.host_to_device.bytes >= ITERATIONS * ROWS * 4
    assert device.device_to_host.bytes >= ITERATIONS * ROWS * 4


@pytest.mark.parametrize("initializer", ["3", "-2", "2.9"])
def test_an_infeed_of_a_number(monkeypatch, initializer):
    flags = f"--synthetic_data_categories=infeed --synthetic_data_initializer={initializer}"
    (x, y), device = fed(monkeypatch, flags)
    np.testing.assert_array_equal(x, np.full([ITERATIONS, ROWS], int(float(initializer)), "f"))
    np.testing.assert_array_equal(y, np.full([ITERATIONS, 2], int(float(initializer))))
    assert device.host_to_device.bytes == 0
    assert device.device_to_host.bytes >= ITERATIONS * ROWS * 4


def test_an_infeed_of_normal_numbers(monkeypatch):
    flags = "--synthetic_data_categories=infeed --synthetic_data_initializer=normal"
    (x, y), _ = fed(monkeypatch, flags)
    # The mean of n samples is within 5 / sqrt(n) but once in a million times; the seed is fixed.
    assert abs(x[0].mean()) < 5 / ROWS**0.5 and abs(x[0].std() - 1) < 0.2
    np.testing.assert_array_equal(y, np.ones([ITERATIONS, 2]))


@pytest.mark.parametrize("initializer", ["uniform", "random"])
def test_an_infeed_over_all_numbers(monkeypatch, initializer):
    flags = f"--synthetic_data_categories=infeed --synthetic_data_initializer={initializer}"
    (x, _), _ = fed(monkeypatch, flags)
    largest = np.finfo(np.float32).max
    assert np.isfinite(x).all() and x.min() < -0.9 * largest and x.max() > 0.9 * largest


def test_contents_without_an_initializer_come_from_nowhere(monkeypatch):
    (x, y), device = fed(monkeypatch, "--synthetic_data_categories=infeed")
    assert not x.any() and not y.any()
    assert device.host_to_device.bytes == 0


def test_an_outfeed_is_sent_nothing(monkeypatch):
    (x, y), device = fed(monkeypatch, "--synthetic_data_categories=outfeed")
    assert x.shape == (0, ROWS) and y.shape == (0, 2)
    assert device.device_to_host.bytes <= CONDITIONS
    assert device.host_to_device.bytes >= ITERATIONS * ROWS * 4


def test_all_data_made_up_move_nothing(monkeypatch):
    _, device = fed(monkeypatch, "--use_synthetic_data --synthetic_data_initializer=1")
    assert device.host_to_device.bytes == 0 and device.device_to_host.bytes <= CONDITIONS


def test_an_outfeed_has_no_last_element(monkeypatch):
    with pytest.raises(tf.errors.FailedPreconditionError, match="not supported. Use IPUOutfeedMode.ALL"):
        fed(monkeypatch, "--use_synthetic_data", ipu_outfeed_queue.IPUOutfeedMode.LAST)


def test_a_null_feed_copies_garbage_and_takes_no_element(monkeypatch):
    def failing():
        return elements().map(lambda x, y: (tf.debugging.check_numerics(x / 0.0, "read"), y))

    (x, _), device = fed(monkeypatch, "--null_data_feed", dataset=failing)
    assert not x.any()
    assert device.host_to_device.bytes >= ITERATIONS * ROWS * 4


def iterated(monkeypatch, flags, branches=False):
    """What a loop of a function gets from an iterator of a strategy's scope; the function may have branches, too."""
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    configure(1)
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        @tf.function(jit_compile=True)
        def program(iterator, first):
            for _ in tf.range(ITERATIONS):
                if not branches:
                    x, y = next(iterator)
                elif first > 0.0:
                    x, y = next(iterator)
                else:
                    y, x = tf.zeros([2], tf.int32), next(iterator)[0]
                outfeed.enqueue((x, y))

        strategy.run(program, [iter(elements()), tf.constant(1.0)])
        return [taken.numpy() for taken in outfeed.dequeue()]


@pytest.mark.parametrize("branches", [False, True])
def test_an_iterator_that_a_loop_is_given(monkeypatch, branches):
    """XLA would take its handle for a variable: the guide's loop of a function ended the process."""
    x, y = iterated(monkeypatch, "", branches)
    assert x[:, 0].tolist() == [5, 6, 7] and y.tolist() == [[5, 5], [6, 6], [7, 7]]
    x, y = iterated(
        monkeypatch, "--synthetic_data_categories=infeed,parameters --synthetic_data_initializer=2", branches
    )
    np.testing.assert_array_equal(x, np.full([ITERATIONS, ROWS], 2, "f"))
    np.testing.assert_array_equal(y, np.full([ITERATIONS, 2], 2))
    x, y = iterated(monkeypatch, "--use_synthetic_data", branches)
    assert x.shape == (0, ROWS) and y.shape == (0, 2)


def test_an_iterator_gives_null_data(monkeypatch):
    x, y = iterated(monkeypatch, "--null_data_feed")
    assert x.shape == (ITERATIONS, ROWS) and not x.any() and not y.any()


def drawn(monkeypatch, flags, runs=2):
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(lambda: v1.random_uniform([4]))
        return [session.run(result).tolist() for _ in range(runs)]


def test_a_made_up_seed_is_the_same_in_each_run(monkeypatch):
    first, second = drawn(monkeypatch, "")
    assert first != second
    first, second = drawn(monkeypatch, "--synthetic_data_categories=seed")
    assert first == second
    flags = "--synthetic_data_categories=seed --synthetic_data_initializer="
    seeded = [drawn(monkeypatch, f"{flags}{number}", 1) for number in (3, 7, 8)]
    assert len({str(values) for values in seeded}) == 3


def test_a_host_embedding_is_neither_read_nor_updated(monkeypatch):
    def run(flags):
        monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
        with tf.Graph().as_default(), v1.Session() as session:
            spec = embedding_ops.HostEmbeddingOptimizerSpec(1.0)
            table = embedding_ops.create_host_embedding(
                "table", [4, 2], tf.float32, optimizer_spec=spec, initializer=v1.ones_initializer()
            )

            def program(indices):
                rows = table.lookup(indices)
                weight = v1.get_variable("weight", [], initializer=v1.ones_initializer(), use_resource=True)
                update = v1.train.GradientDescentOptimizer(0.0).minimize(tf.reduce_sum(rows) * weight)
                return rows, update

            indices = v1.placeholder(tf.int32, [2])
            with scopes.ipu_scope(IPU):
                rows = ipu_compiler.compile(program, [indices])[0]
            session.run(v1.global_variables_initializer())
            with table.register(session):
                got = session.run(rows, {indices: [1, 3]})
            return got.tolist(), session.run(table.get_embedding_tensor()).tolist()

    assert run("") == ([[1, 1], [1, 1]], [[1, 1], [0, 0], [1, 1], [0, 0]])
    flags = "--synthetic_data_categories=hostembedding --synthetic_data_initializer=7"
    assert run(flags) == ([[7, 7], [7, 7]], [[1, 1]] * 4)


def test_what_cannot_be_made_up_is_refused(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--synthetic_data_categories=infeed --synthetic_data_initializer=1")
    from tf_ipu_shim.compiler.passes import synthetic_data

    with pytest.raises(errors.UnsupportedError, match="dtype complex64 can be created for signal"):
        synthetic_data.synthesize("1", tf.complex64, [2], "signal")
