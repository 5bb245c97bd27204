"""Loops that run several iterations in one XLA program give what they give one by one."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, scopes

from tf_ipu_shim import ipu, memory_report, plugin
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph
from tf_ipu_shim.compiler.loops.trip_count import trip_count

pytestmark = [pytest.mark.one_version, pytest.mark.usefixtures("graph")]

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def compiled(function):
    with scopes.ipu_scope(IPU):
        return ipu.ipu_compiler.compile(function)


def run(n, dataset, body, start, mode=ipu_outfeed_queue.IPUOutfeedMode.ALL, runs=1):
    """The loop's results of each run, what was sent, and the variables."""
    infeed = dataset and ipu_infeed_queue.IPUInfeedQueue(dataset)
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue(mode)
    program = compiled(lambda: ipu.loops.repeat(n, lambda *values: body(outfeed, *values), start, infeed))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), *([infeed.initializer] if infeed else [])])
        results = [session.run(program) for _ in range(runs)]
        return results, session.run(dequeued), session.run(v1.global_variables())


@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 150])
def test_every_iteration_is_run_once(n):
    def body(outfeed, total, x, y):
        count = v1.get_variable("count", [], initializer=v1.zeros_initializer(), use_resource=True)
        sent = outfeed.enqueue({"x": x, "pair": (total, y > 2)})
        with tf.control_dependencies([count.assign_add(1.0)]):
            return total + x, sent

    numbers = np.arange(2 * n, dtype="f")
    dataset = tf.data.Dataset.from_tensor_slices((numbers, np.arange(4 * n, dtype="i").reshape(-1, 2)))
    results, sent, (count,) = run(n, dataset, body, [10.0], runs=2)
    totals = 10 + np.concatenate([[0], np.cumsum(numbers[:n])])
    assert results[0] == [totals[-1]] and results[1] == [10 + numbers[n:].sum()]
    np.testing.assert_array_equal(sent["x"], numbers)
    np.testing.assert_array_equal(sent["pair"][0][:n], totals[:-1])
    assert sent["pair"][1].dtype == bool
    np.testing.assert_array_equal(sent["pair"][1], np.arange(4 * n).reshape(-1, 2) > 2)
    assert count == 2 * n


@settings(max_examples=6, deadline=None)
@given(n=st.integers(2, 40), length=st.integers(1, 40), shape=st.lists(st.integers(1, 4), max_size=3))
def test_the_end_of_the_data_follows_earlier_iterations(n, length, shape):
    ipu.config.reset_ipu_configuration()
    with tf.Graph().as_default():
        values = np.random.RandomState(0).rand(length, *shape).astype("f")
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(values))
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        program = compiled(lambda: ipu.loops.repeat(n, lambda x: outfeed.enqueue(x * 2), [], infeed))
        dequeued = outfeed.dequeue()
        got = []
        with v1.Session() as session:
            session.run(infeed.initializer)
            for _ in range(length // n):
                session.run(program)
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence: the dataset of infeed .*repeat"):
                session.run(program)
            got = session.run(dequeued)
        np.testing.assert_allclose(got, values * 2)


def test_an_error_of_the_dataset_follows_earlier_iterations():
    def fail(i):
        if i == 5:
            raise ValueError("no such picture")
        return np.float32(i)

    dataset = tf.data.Dataset.range(10).map(
        lambda i: tf.ensure_shape(tf.numpy_function(fail, [i], tf.float32), []), num_parallel_calls=1
    )
    infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue()
    program = compiled(lambda: ipu.loops.repeat(8, lambda x: outfeed.enqueue(x), [], infeed))
    shorter = compiled(lambda: ipu.loops.repeat(4, lambda x: x + 1, [0.0]))
    dequeued, start = outfeed.dequeue(), infeed.initializer
    with v1.Session() as session:
        for _ in range(2):
            session.run(start)
            with pytest.raises(tf.errors.InvalidArgumentError, match="no such picture"):
                session.run(program)
            assert session.run(dequeued).tolist() == [0, 1, 2, 3, 4]
        assert session.run(shorter) == [4]


def test_only_the_last():
    results, last, _ = run(
        70, None, lambda outfeed, x: (x + 1, outfeed.enqueue(x)), [0.0], ipu_outfeed_queue.IPUOutfeedMode.LAST
    )
    assert results == [[70.0]] and last == 69


def test_random_numbers_do_not_depend_on_chunks():
    drawn = []
    for together in (False, True):
        ipu.config.reset_ipu_configuration()
        ipu.utils.reset_ipu_seed(3)

        def body(outfeed, x, together=together):
            if not together:  # an op on the host keeps the iterations apart
                with tf.control_dependencies([ipu.internal_ops.print_tensor(x)]):
                    x = tf.identity(x)
            return x, outfeed.enqueue(tf.random.uniform([2], seed=1, name="drawn"))

        with tf.Graph().as_default():
            drawn.append(run(20, None, body, [0.0])[1])
    np.testing.assert_array_equal(*drawn)
    assert len(np.unique(drawn[0])) > 30


def test_a_loop_within_a_loop():
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

    def inner(x):
        return x + 1, outfeed.enqueue(x)

    program = compiled(lambda: ipu.loops.repeat(4, lambda x: ipu.loops.repeat(3, inner, [x * 2]), [1.0]))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        value, expected = 1.0, []
        for _ in range(4):
            value *= 2
            for _ in range(3):
                expected.append(value)
                value += 1
        assert session.run(program) == [value]
        assert session.run(dequeued).tolist() == expected


def test_the_plan_is_that_of_iterations_one_by_one():
    plugin.load().reset_counters(0)
    dataset = tf.data.Dataset.from_tensor_slices(np.ones([4, 1000], "f")).repeat()
    run(40, dataset, lambda outfeed, total, x: (total + x, outfeed.enqueue(x[:3])), [np.zeros(1000, "f")])
    (program,) = memory_report().devices[0].programs
    assert 4000 <= program.peak_bytes < 5 * 4000


def loop_of(function):
    concrete = tf.function(function, autograph=False).get_concrete_function()
    graph = concrete.graph.as_graph_def()
    graphs = {definition.signature.name: FunctionGraph.parse(definition) for definition in graph.library.function}
    definition = FunctionGraph.parse(concrete.function_def)
    (loop,) = [node for node in definition.nodes if node.op in ("While", "StatelessWhile")]
    return trip_count(definition, loop, graphs)


@pytest.mark.parametrize(
    ("condition", "body", "start", "expected"),
    [
        (lambda i: i < 7, lambda i: i + 1, 0, 7),
        (lambda i: i < 7, lambda i: 2 + i, 0, 4),
        (lambda i: i < 7, lambda i: i + 1, 9, 0),
        (lambda i: i < 2**31 - 1, lambda i: i + 1, 0, 2**31 - 1),
        (lambda i: i < 2**31 - 1, lambda i: i + 2, 0, None),  # the counter wraps around
        (lambda i: tf.cast(i, tf.int64) < 2**40, lambda i: i + 1, 0, None),
        (lambda i: tf.logical_and(i < 7, i < 5), lambda i: i + 1, 1, 4),
        (lambda i: i <= 7, lambda i: i + 1, 0, None),
        (lambda i: i < 7, lambda i: i * 2, 1, None),
        (lambda i: i < 7, lambda i: i - 1, 1, None),
        (lambda i: tf.logical_or(i < 7, i < 5), lambda i: i + 1, 1, None),
    ],
)
def test_trip_counts(condition, body, start, expected):
    assert loop_of(lambda: tf.while_loop(condition, lambda i: [body(i)], [tf.constant(start)])) == expected


@pytest.mark.parametrize("numbers", [(5,), (0,), (2, 11, 3), (2, 12, 3), (4, 4), (-3, 3)])
def test_trip_counts_of_ranges(numbers):
    def ranged():
        total = 0
        for i in tf.range(*numbers):
            total += i
        return total

    assert loop_of(tf.autograph.to_graph(ranged)) == len(range(*numbers))


def test_trip_counts_of_ranges_that_are_not_known():
    def down():
        total = 0
        for i in tf.range(9, 0, -2):
            total += i
        return total

    assert loop_of(tf.autograph.to_graph(down)) is None

    def until(n):
        for i in tf.range(n):
            if i > 3:
                break
        return i

    assert loop_of(lambda: tf.autograph.to_graph(until)(tf.random.uniform([], 0, 9, tf.int32))) is None
    assert loop_of(lambda: tf.autograph.to_graph(until)(tf.constant(9))) is None


def test_a_number_is_not_looked_for_without_end():
    """A chain of sums of a number and itself: as many ways to its beginning as two to the power of its length."""

    def summed():
        first = tf.constant(0)
        for _ in range(60):
            first += first
        return tf.while_loop(lambda i: i < 7, lambda i: [i + 1], [first])

    assert loop_of(summed) is None


def test_trip_counts_that_are_not_known():
    def by_value(x):
        return loop_of(lambda: tf.while_loop(lambda i, n: i < n, lambda i, n: [i + 1, x(n)], [0, tf.constant(3)]))

    assert by_value(lambda n: n) == 3
    assert by_value(lambda n: n - 1) is None


def test_the_number_of_the_iteration():
    with pytest.raises(ValueError, match="outside a loop body"):
        ipu.internal_ops.get_current_iteration_counter()

    def body(outfeed, total):
        number = ipu.internal_ops.get_current_iteration_counter(lower_bound=0)
        inner = ipu.loops.repeat(2, lambda x: x + ipu.internal_ops.get_current_iteration_counter(), [0])
        return total + number + inner, outfeed.enqueue(number)

    results, sent, _ = run(5, None, body, [0])
    assert results == [[0 + 1 + 2 + 3 + 4 + 5]] and sent.tolist() == [0, 1, 2, 3, 4]
