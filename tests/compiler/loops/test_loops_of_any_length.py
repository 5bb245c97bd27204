"""Loops that run as often as a tensor says: several iterations run in one XLA program, with stock results."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tf_ipu_shim.ipu import ipu_outfeed_queue, ipu_strategy

from tf_ipu_shim import memory_report, plugin
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph
from tf_ipu_shim.compiler.ir.trips import Limit, Trips
from tf_ipu_shim.compiler.loops import chunks
from tf_ipu_shim.compiler.loops.trip_count import find_trips
from tf_ipu_shim.driver import planned_program

pytestmark = pytest.mark.one_version

ROWS = np.linspace(-1, 1, 600, dtype="f").reshape(-1, 2)
MOST = 2**31 - 1


def ranged(step, state, begin, end):
    for _ in tf.range(end):
        state = step(state)
    return state


def ranged_from(step, state, begin, end):
    for i in tf.range(begin, end):
        state = step(state) + tf.cast(i % 7, tf.float32)
    return state


def by_twos(step, state, begin, end):
    for _ in tf.range(begin, end, 2):
        state = step(state)
    return state


def while_less(step, state, begin, end):
    i = begin
    while i < end:
        state = step(state)
        i += 1
    return state


def while_both(step, state, begin, end):
    return tf.while_loop(
        lambda i, _: tf.logical_and(i < end, i < 66),
        lambda i, s: (i + 1, step(s)),
        (begin, state),
        parallel_iterations=1,
    )[1]


def capped(step, state, begin, end):
    return tf.while_loop(lambda i, _: i < end, lambda i, s: (i + 1, step(s)), (begin, state), maximum_iterations=70)[1]


def nested(step, state, begin, end):
    for _ in tf.range(3):
        for _ in tf.range(begin, end):
            state = step(state)
        state = state / 2
    return state


def nested_in_a_tensor(step, state, begin, end):
    for _ in tf.range(end):
        for _ in tf.range(end):
            state = step(state)
    return state


def step_with(iterator, send):
    def step(state):
        state = state * 0.5 + next(iterator)
        send(state)
        return state

    return step


class Stock:
    """A function that stock TensorFlow runs."""

    def __init__(self, form):
        self._sent = []

        def keep(state):
            self._sent.append(state.numpy())

        @tf.function
        def function(iterator, begin, end):
            step = step_with(iterator, lambda state: tf.py_function(keep, [state], []))
            return form(step, tf.zeros([2]), begin, end)

        self._function = function

    def __call__(self, begin, end, rows):
        self._sent.clear()
        with tf.device("/CPU:0"):
            result = self._function(iter(tf.data.Dataset.from_tensor_slices(rows)), begin, end).numpy()
        return result, np.array(self._sent, "f").reshape(-1, 2)


_stock = functools.cache(Stock)


def stock(form, begin, end, rows=ROWS):
    """What stock TensorFlow's function gives, and what it sends."""
    return _stock(form)(begin, end, rows)


class OnIpu:
    """A function on an IPU that is called several times."""

    def __init__(self, form):
        self.queue = ipu_outfeed_queue.IPUOutfeedQueue()
        self.strategy = ipu_strategy.IPUStrategy()

        @tf.function
        def function(iterator, begin, end):
            return form(step_with(iterator, self.queue.enqueue), tf.zeros([2]), begin, end)

        self._function = function

    def __call__(self, begin, end, rows=ROWS):
        with self.strategy.scope():
            iterator = iter(tf.data.Dataset.from_tensor_slices(rows))
            try:
                return self.strategy.run(self._function, (iterator, begin, end)).numpy()
            finally:
                self.sent = np.array(self.queue.dequeue(), "f").reshape(-1, 2)


@pytest.fixture
def in_chunks(monkeypatch):
    """Whether each program that is lowered runs loops in chunks."""
    found, lower = [], planned_program.lower

    def spy(*arguments, **options):
        program = lower(*arguments, **options)
        found.append(program.has_chunks)
        return program

    monkeypatch.setattr(planned_program, "lower", spy)
    return found


# Numbers of 64 bits where TensorFlow makes the loop, and where the script does.
@pytest.mark.parametrize(
    ("form", "kind"),
    [(form, tf.int32) for form in (ranged, ranged_from, while_less, while_both, capped, by_twos)]
    + [(form, tf.int64) for form in (ranged_from, while_less)],
)
def test_every_length(ipus, execution_mode, in_chunks, form, kind):
    ipus(1)
    on_ipu, before = OnIpu(form), plugin.load().programs_lowered(0)
    for begin, end in [(0, 5), (0, 0), (0, 1), (0, -4), (-3, 2), (1, 65), (0, 64), (2, 70)]:
        result = on_ipu(tf.constant(begin, kind), tf.constant(end, kind))
        expected, sent = stock(form, tf.constant(begin, kind), tf.constant(end, kind))
        np.testing.assert_allclose(result, expected, rtol=1e-5)
        np.testing.assert_allclose(on_ipu.sent, sent, rtol=1e-5)
    assert plugin.load().programs_lowered(0) == before + 1
    assert any(in_chunks) == (execution_mode == "xla" and form is not by_twos)


def test_a_loop_in_a_loop(ipus, execution_mode):
    ipus(1)
    on_ipu = {form: OnIpu(form) for form in (nested, nested_in_a_tensor)}

    @settings(max_examples=24, deadline=None)
    @given(form=st.sampled_from([nested, nested_in_a_tensor]), end=st.integers(-3, 17))
    def check(form, end):
        begin, end = tf.constant(0), tf.constant(end)
        np.testing.assert_allclose(on_ipu[form](begin, end), stock(form, begin, end)[0], rtol=1e-5)

    check()


def test_the_end_of_the_data(ipus, execution_mode):
    ipus(1)
    on_ipu = OnIpu(while_less)

    @settings(max_examples=24, deadline=None)
    @given(length=st.integers(1, 150), end=st.one_of(st.integers(1, 150), st.integers(MOST - 3, MOST)))
    def check(length, end):
        rows, begin, end = ROWS[:length], tf.constant(0), tf.constant(end)
        if end <= length:
            on_ipu(begin, end, rows)
        else:
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                on_ipu(begin, end, rows)
        _, sent = stock(while_less, begin, tf.minimum(end, length), rows)
        np.testing.assert_allclose(on_ipu.sent, sent, rtol=1e-5)

    check()


@pytest.mark.parametrize(
    ("begin", "end", "kind"),
    [
        (MOST - 5, MOST, tf.int32),
        (-MOST - 1, -MOST + 2, tf.int32),
        (2**40, 2**40 + 67, tf.int64),
        (-(2**63), -(2**63) + 3, tf.int64),
        (2**63 - 4, 2**63 - 1, tf.int64),
    ],
)
def test_near_the_largest_numbers(ipus, execution_mode, begin, end, kind):
    ipus(1)
    begin, end = tf.constant(begin, kind), tf.constant(end, kind)
    on_ipu = OnIpu(while_less)
    np.testing.assert_allclose(on_ipu(begin, end), stock(while_less, begin, end)[0], rtol=1e-5)


@pytest.mark.parametrize(("end", "kind"), [(MOST, tf.int32), (2**40, tf.int64), (2**63 - 1, tf.int64)])
def test_more_iterations_than_are_counted(ipus, execution_mode, end, kind):
    ipus(1)
    on_ipu = OnIpu(while_less)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        on_ipu(tf.constant(kind.min, kind), tf.constant(end, kind))
    assert len(on_ipu.sent) == len(ROWS)


def test_a_variable_says_how_often(ipus, execution_mode, in_chunks):
    ipus(1)
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        times, total = tf.Variable(3), tf.Variable(0.0)
        iterator = iter(tf.data.Dataset.from_tensor_slices(np.arange(100, dtype="f")))

        @tf.function
        def function(iterator):
            for _ in tf.range(times):
                total.assign_add(next(iterator))

        taken = 0
        for count in (3, 0, 70, 2):
            times.assign(count)
            strategy.run(function, (iterator,))
            taken += count
            assert total.numpy() == np.arange(taken).sum()
    assert any(in_chunks) == (execution_mode == "xla")


def planned(form):
    on_ipu = OnIpu(form)
    on_ipu(tf.constant(0), tf.constant(9))
    return memory_report().devices[0].programs[-1]


def test_the_plan_is_that_of_iterations_one_by_one(ipus, monkeypatch, in_chunks):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")
    ipus(1)
    together = planned(ranged)
    monkeypatch.setattr(chunks, "_MAX_ITERATIONS", 1)
    ipus(1)
    apart = planned(ranged)
    assert in_chunks == [True, False]
    assert together.ipus == apart.ipus and together.peak_bytes > 0


def test_total_of_iterations():
    total = plugin.load().ops.ipu_loop_total
    least, most = -(2**63), 2**63 - 1
    with tf.device("/CPU:0"):
        for counter, limit in [
            (0, 7),
            (5, 5),
            (6, 5),
            (least, 0),
            (least, most),
            (-1, most),
            (least, least),
            (most, most),
        ]:
            given = [tf.constant([counter, 0], tf.int64)[0]], [tf.constant([limit, 0], tf.int64)[0]]
            assert total(*given).numpy() == min(most, max(0, limit - counter))
            assert total(*given, most=3).numpy() == min(3, max(0, limit - counter))
        pairs = (
            [tf.constant(-(2**31)), tf.constant(1, tf.int64)],
            [tf.constant(2**31 - 1), tf.constant(2**40, tf.int64)],
        )
        assert total(*pairs).numpy() == 2**32 - 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="takes numbers"):
            total([tf.zeros([2], tf.int32)], [tf.constant(3)])


def trips(condition, body, *start, **options):
    """What is told of a loop in a function whose arguments are `start`."""

    @tf.function(autograph=False)
    def function(*start):
        return tf.while_loop(condition, body, start, **options)

    concrete = function.get_concrete_function(*(tf.TensorSpec([], value.dtype) for value in start))
    graph = concrete.graph.as_graph_def()
    graphs = {definition.signature.name: FunctionGraph.parse(definition) for definition in graph.library.function}
    definition = FunctionGraph.parse(concrete.function_def)
    (loop,) = [node for node in definition.nodes if node.op in ("While", "StatelessWhile")]
    found = find_trips(definition, loop, graphs)
    # Loop variables of TensorFlow's own come first.
    first = len(loop.inputs) - len(start)
    return found and Trips(
        found.most,
        tuple(each._replace(counter=each.counter - first, limit=each.limit - first) for each in found.limits),
    )


ZERO, LONG = tf.constant(0), tf.constant(0, tf.int64)


def test_what_the_number_of_iterations_follows_from():
    kind = tf.int32.as_datatype_enum
    found = trips(lambda i, n: i < n, lambda i, n: [i + 1, n], ZERO, ZERO)
    assert found == Trips(-1, (Limit(0, 1, 0, kind),))
    capped = trips(lambda i, n: i < n, lambda i, n: [1 + i, n], ZERO, ZERO, maximum_iterations=9)
    assert capped == Trips(9, (Limit(0, 1, 0, kind),))
    constant = trips(lambda i: i < 2**40, lambda i: [i + 1], LONG)
    assert [each.constant for each in constant.limits] == [2**40]


@pytest.mark.parametrize(
    ("condition", "body", "start"),
    [
        (lambda i, n: i < n, lambda i, n: [i + 1, n - 1], [ZERO, ZERO]),
        (lambda i, n: i < n, lambda i, n: [i + 2, n], [ZERO, ZERO]),
        (lambda i, n: i < n, lambda i, n: [i - 1, n], [ZERO, ZERO]),
        (lambda i, n: i < n, lambda i, n: [i + n, n], [ZERO, ZERO]),
        (lambda i, n: i <= n, lambda i, n: [i + 1, n], [ZERO, ZERO]),
        (lambda i, n: i * 2 < n, lambda i, n: [i + 1, n], [ZERO, ZERO]),
        (lambda i, n: tf.logical_or(i < n, i < 3), lambda i, n: [i + 1, n], [ZERO, ZERO]),
        # One that wraps around before it meets a limit of more bits, and one that does not count every number.
        (lambda i, n: tf.cast(i, tf.int64) < n, lambda i, n: [i + 1, n], [ZERO, LONG]),
        (lambda i, n: i < n, lambda i, n: [tf.cast(tf.cast(i, tf.int8) + 1, tf.int32), n], [ZERO, ZERO]),
        (lambda i, n: i < n, lambda i, n: [i + 1, n], [tf.constant(0.0), tf.constant(0.0)]),
    ],
)
def test_loops_whose_number_of_iterations_nobody_can_tell(condition, body, start):
    assert trips(condition, body, *start) is None
