"""How a program runs where nobody says: what it computes is counted, and the mode follows from that."""

import contextlib
import functools
import pathlib
import re
import threading

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, check_function, configure
from tf_ipu_shim.ipu import config, ipu_compiler, scopes

import tf_ipu_shim
from tf_ipu_shim import ipu, plugin
from tf_ipu_shim.compiler.kernels.kernels import to_kernels
from tf_ipu_shim.driver import execution_choice, planned_program
from tf_ipu_shim.driver.execution_choice import choose
from tf_ipu_shim.machine.environment import execution_mode
from tf_ipu_shim.memory_model.computations import work as work_module
from tf_ipu_shim.memory_model.computations.work import ProgramWork, Size, Work

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture
def counted(ipus, monkeypatch):
    """What the programs compute that a test runs, in order."""
    found = []

    def noting(work):
        found.append(work)
        return choose(work)

    monkeypatch.setattr(planned_program, "choose", noting)
    ipus()
    return found


def run(function, *inputs, runs=1):
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(value.dtype, value.shape) for value in inputs]
        with scopes.ipu_scope(IPU):
            result = ipu_compiler.compile(function, fed)
        session.run(v1.global_variables_initializer())
        return [session.run(result, dict(zip(fed, inputs))) for _ in range(runs)]


def floats(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# What is counted


def test_a_product(counted):
    run(lambda x, y: tf.nn.relu(x @ y), floats(4, 8), floats(8, 5))
    (found,) = counted
    assert (found.work.products, found.work.small_products) == (0, 2 * 4 * 8 * 5)
    assert (found.launches, found.iterations, found.random) == (1, 0, 0)
    assert found.work.ops == 2
    assert (found.work.passes, found.work.wide_passes, found.work.results) == (4 * 5, 0, 4 * 5)


def test_what_runs_on_all_cores(counted):
    run(lambda x, y: tf.nn.relu(tf.matmul(x, y, transpose_b=True)), floats(320, 300), floats(320, 300))
    work = counted[0].work
    assert (work.products, work.small_products) == (2 * 320 * 300 * 320, 0)
    assert (work.passes, work.wide_passes, work.results) == (0, 320 * 320, 320 * 320)


def test_rows_of_a_table_that_change(counted):
    def program(rows):
        table = v1.get_variable("table", [500, 4], use_resource=True)
        return table.scatter_add(tf.IndexedSlices(rows, tf.constant([7, 3, 7])))

    run(program, floats(3, 4))
    work = counted[-1].work
    assert (work.updates, work.results) == (500 * 4, 500 * 4)  # in place, and returned
    assert work.passes < 500 * 4 + 100


def test_what_xla_alone_runs_on_all_cores(counted):
    run(lambda x, y: x @ y, floats(256, 256), floats(256, 256))
    run(lambda x, y: x @ y, floats(32, 1024), floats(1024, 512))  # as many multiplications, of a row of 32
    run(lambda x, y: x @ y, floats(128, 128), floats(128, 128))
    square, flat, small = (found.work for found in counted)
    assert (square.products, square.square_products, square.small_products) == (0, 2 * 256**3, 0)
    assert (flat.products, flat.square_products, flat.small_products) == (0, 0, 2 * 256**3)
    assert (small.square_products, small.even_products, small.small_products) == (0, 2 * 128**3, 0)


def test_a_product_of_16_bit_floats(counted):
    run(lambda x, y: x @ y, floats(4, 8).astype(np.float16), floats(8, 5).astype(np.float16))
    assert counted[0].work.small_products == 2 * 4 * 8 * 5


def test_convolutions_of_groups_and_of_16_bit_floats(counted):
    run(
        lambda x, kernel: tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME"),
        floats(2, 6, 6, 3),
        floats(3, 3, 3, 1),
    )
    halves = [floats(*shape).astype(np.float16) for shape in ((2, 6, 6, 3), (3, 3, 3, 4))]
    run(lambda x, kernel: tf.nn.conv2d(x, kernel, 1, "SAME"), *halves)
    grouped, plain = counted
    assert (grouped.work.convolutions, grouped.work.grouped_convolutions) == (0, 2 * (2 * 6 * 6 * 3) * (3 * 3))
    assert (plain.work.convolutions, plain.work.grouped_convolutions) == (2 * (2 * 6 * 6 * 4) * (3 * 3 * 3), 0)


def test_a_convolution_and_the_gradient_of_a_pooling(counted):
    def model(x, kernel):
        made = tf.nn.max_pool2d(tf.nn.conv2d(x, kernel, 1, "SAME"), 2, 2, "VALID")
        return tf.gradients(made, [kernel])

    run(model, floats(2, 6, 6, 3), floats(3, 3, 3, 4))
    (found,) = counted
    one = 2 * (2 * 6 * 6 * 4) * (3 * 3 * 3)
    assert one <= found.work.convolutions <= 3 * one
    assert found.work.windows >= 2 * 6 * 6 * 4


def test_a_loop_within_a_program(counted):
    def model(x):
        return tf.while_loop(lambda i, _: i < 7, lambda i, y: (i + 1, tf.tanh(y @ x)), [0, x])

    run(model, floats(3, 3))
    (found,) = counted
    assert found.launches == 1
    assert found.work.iterations == 7
    assert found.work.small_products == 7 * 2 * 3 * 3 * 3


def test_a_loop_whose_end_nobody_knows(counted):
    run(lambda x: tf.while_loop(lambda y: tf.reduce_sum(y) < 10, lambda y: [y * 2], [x]), np.ones([4], np.float32))
    assert counted[0].work.iterations == work_module.UNKNOWN_TRIPS


def loop(steps, body, data):
    """A loop with feeds: what it sends."""
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(data).repeat())
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope(IPU):
            program = ipu_compiler.compile(
                lambda: ipu.loops.repeat(steps, lambda x: outfeed.enqueue(body(x)), [], infeed)
            )
        dequeued = outfeed.dequeue()
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        return session.run(dequeued)


def test_a_loop_with_feeds(counted):
    loop(12, lambda x: tf.reduce_sum(x @ x), floats(3, 5, 5))
    (found,) = counted
    assert found.iterations == 12
    assert found.chunked_work.small_products == 12 * 2 * 5 * 5 * 5


@pytest.mark.parametrize("numbers", [(12,), (3, 15), (0, 36, 3)])
def test_a_loop_that_autograph_makes_of_a_range(counted, numbers):
    data, outfeed = floats(3, 5, 5), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    strategy = ipu.ipu_strategy.IPUStrategyV1()

    @tf.function(jit_compile=True)
    def program(elements):
        total = 0.0
        for _ in tf.range(*numbers):
            product = tf.reduce_sum(tf.linalg.matmul(*[next(elements)] * 2))
            outfeed.enqueue(product)
            total += product
        return total

    with strategy.scope():
        total = strategy.run(program, args=[iter(tf.data.Dataset.from_tensor_slices(data).repeat())])
        sent = outfeed.dequeue()
    expected = np.tile((data @ data).sum((1, 2)), 4)
    np.testing.assert_allclose(sent, expected, rtol=1e-4)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-4)
    (found,) = counted
    assert found.iterations == 12
    assert found.chunked_work.small_products == 12 * 2 * 5 * 5 * 5


def recurrent(x):
    """The gradient of a loop over the first axis of [steps, n, n]."""

    def step(i, state):
        return i + 1, tf.tanh(state @ x[i])

    steps = x.shape[0]
    _, state = tf.while_loop(lambda i, _: i < steps, step, [0, tf.ones(x.shape[1:])], maximum_iterations=steps)
    return tf.gradients(tf.reduce_sum(state), x)[0]


def test_a_recurrent_network_that_is_fed(counted):
    """The loop and that of its gradient are in one XLA program, though the lists between them need no element."""
    data, times, steps, size = 0.3 * floats(3, 5, 4, 4), 6, 5, 4
    gradients = loop(times, recurrent, data)
    (found,) = counted
    found.work.add(found.chunked_work)
    assert found.work.iterations == times * 2 * steps
    assert found.work.small_products == times * steps * (1 + 2) * 2 * size**3
    for given, gradient in zip(np.tile(data, (2, 1, 1, 1)), gradients):
        with tf.Graph().as_default(), v1.Session() as session:
            expected = session.run(recurrent(tf.constant(given)))
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)


def test_a_loop_over_two_ipus(counted, ipus):
    ipus(2)

    def body(x):
        with scopes.ipu_shard(0):
            x = x @ x
        with scopes.ipu_shard(1):
            return tf.reduce_sum(x @ x)

    loop(12, body, floats(3, 5, 5))
    (found,) = counted
    assert found.iterations == 0 and found.launches >= 24
    assert found.work.small_products == 2 * 12 * 2 * 5 * 5 * 5


def test_random_ops(counted):
    run(lambda x: tf.nn.dropout(x, 0.5) + tf.random.normal([4]), floats(4))
    assert counted[0].random == 2


# What is chosen


def as_on(monkeypatch, version):
    monkeypatch.setattr(execution_choice, "costs", functools.partial(execution_choice.costs, version))


@pytest.fixture(params=["2.15.1", "2.21.0"])
def any_version(monkeypatch, request):
    """What ways take on each TensorFlow, whatever is installed."""
    as_on(monkeypatch, request.param)


def a_step(**amounts):
    return ProgramWork(Work(**amounts), launches=1.0, compiled={"program": Size(int(amounts["ops"]), 0)})


def test_a_conv_net_runs_by_kernels(any_version):
    assert choose(a_step(ops=50, passes=1e6, convolutions=1e9, windows=1e7)).mode == execution_mode.KERNELS


def test_depthwise_convolutions_run_by_kernels(any_version):
    assert choose(a_step(ops=300, passes=3e4, grouped_convolutions=1e7)).mode == execution_mode.KERNELS


def test_square_products_of_middle_size_run_by_xla(any_version):
    work = Work(ops=41, passes=1.3e6, square_products=20 * 2 * 256**3, results=256)
    assert choose(ProgramWork(work, launches=1, compiled={"cluster": Size(80, 20)})).mode == execution_mode.XLA


def test_square_products_that_one_core_runs_run_by_kernels(any_version):
    work = Work(ops=42, passes=2.8e5, even_products=16 * 2 * 128**3, results=128)
    compiled = {f"cluster_{index}": Size(16, 4) for index in range(4)}
    assert choose(ProgramWork(work, launches=4, compiled=compiled)).mode == execution_mode.KERNELS


def test_shards_of_large_products_run_by_kernels(any_version):
    work = Work(ops=34, wide_passes=2.8e6, inner=1.5e5, products=1.8e9, results=7.4e5)
    compiled = {f"cluster_{index}": Size(8, 2) for index in range(8)}
    assert choose(ProgramWork(work, launches=8, compiled=compiled)).mode == execution_mode.KERNELS


def test_small_stages_run_by_kernels(any_version):
    work = ProgramWork(Work(ops=2000, passes=3e5, products=3e6), launches=600, compiled={"stage": Size(20, 4)})
    assert choose(work).mode == execution_mode.KERNELS


def test_many_small_ops_run_by_xla(any_version):
    assert choose(a_step(ops=300, passes=3e4)).mode == execution_mode.XLA


def test_small_iterations_in_chunks_run_by_xla(any_version):
    computed = Work(ops=20 * 1000, products=1e9, passes=1e7)
    work = ProgramWork(chunked_work=computed, iterations=1000, compiled={"program": Size(60, 8)})
    assert choose(work).mode == execution_mode.XLA


def test_what_would_compile_for_minutes_runs_by_kernels(any_version):
    work = a_step(ops=300, passes=3e4)
    work.compiled["program"] = Size(20_000, 1_000)
    assert choose(work).mode == execution_mode.KERNELS


def test_what_runs_for_long_is_worth_compiling(any_version):
    work = a_step(ops=300, passes=3e4)
    work.compiled["program"] = Size(2_000, 100)
    longer = ProgramWork(Work(ops=300 * 1e6, passes=3e10), launches=1, compiled=work.compiled)
    assert (choose(work).mode, choose(longer).mode) == (execution_mode.KERNELS, execution_mode.XLA)


def test_nothing_at_all():
    assert choose(ProgramWork()).mode in (execution_mode.XLA, execution_mode.KERNELS)


def convolution(x, kernel):
    made = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), 2, 2, "VALID")
    return [tf.reduce_sum(made), *tf.gradients(made, [kernel])]


def many_small(x, _):
    x = x[0, 0, 0]
    for index in range(300):
        x = tf.tanh(x * 1.5) if index % 2 else x + 0.25
    return x


@pytest.mark.parametrize(("model", "mode"), [(convolution, execution_mode.KERNELS), (many_small, execution_mode.XLA)])
def test_the_report_says_how_and_why(ipus, monkeypatch, model, mode):
    as_on(monkeypatch, "2.15.1")
    inputs = floats(4, 32, 32, 8), floats(3, 3, 8, 16)
    results = {}
    for asked in execution_mode.MODES:
        monkeypatch.setenv(execution_mode.ENVIRONMENT_VARIABLE, asked)
        ipus()
        (results[asked],) = run(model, *inputs)
        (device,) = tf_ipu_shim.memory_report().devices
        assert device.programs[-1].mode == (mode if asked == execution_mode.AUTO else asked)
        if asked == execution_mode.AUTO:
            assert "estimated" in device.programs[-1].mode_reason
            assert "by XLA, " in tf_ipu_shim.memory_report().to_text(verbose=True).replace("\n   ", "")
    for ours, xla, kernels in zip(
        results[execution_mode.AUTO], results[execution_mode.XLA], results[execution_mode.KERNELS]
    ):
        np.testing.assert_allclose(xla, kernels, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(ours, xla if mode == execution_mode.XLA else kernels)


def test_a_table_is_updated_in_place_in_chunks():
    rows = Work(ops=20, passes=2e4, updates=6.4e6)
    chunked = ProgramWork(chunked_work=rows, iterations=100, compiled={"program": Size(40, 4)})
    assert choose(chunked).mode == execution_mode.XLA
    if tf.__version__ < "2.18":  # where a launch of XLA copies the table
        assert choose(ProgramWork(rows, launches=1, compiled=chunked.compiled)).mode == execution_mode.KERNELS


def test_nothing_said_is_auto(ipus, monkeypatch):
    monkeypatch.delenv(execution_mode.ENVIRONMENT_VARIABLE, raising=False)
    assert execution_mode.requested_mode() == execution_mode.AUTO
    check_function(lambda parts, x: tf.reduce_sum(x * parts.variable("w", np.ones([3]))), [floats(3)])
    assert "estimated" in tf_ipu_shim.memory_report().devices[0].programs[-1].mode_reason


def test_without_a_memory_plan_the_choice_is_the_same(ipus, monkeypatch):
    ways_taken = []
    monkeypatch.setattr(planned_program, "choose", lambda work: ways_taken.append(choose(work)) or ways_taken[-1])
    for planned in ("on", "off"):
        monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", planned)
        ipus()
        run(convolution, floats(4, 32, 32, 8), floats(3, 3, 8, 16))
    assert ways_taken[0] == ways_taken[1]


def test_counters_are_the_same_in_all_ways(ipus, monkeypatch):
    found = []
    for asked in execution_mode.MODES:
        monkeypatch.setenv(execution_mode.ENVIRONMENT_VARIABLE, asked)
        ipus()
        library = plugin.load()
        library.reset_counters(0)
        loop(6, lambda x: tf.reduce_sum(x @ x), floats(3, 5, 5))
        found.append((library.programs_lowered(0), library.programs_compiled(0), library.programs_run(0)))
        config.reset_ipu_configuration()
    assert found[0] == found[1] == found[2] and found[0][2] == 1


def test_a_program_that_runs_by_kernels_is_lowered_for_them(ipus, monkeypatch):
    """A loop that would run in chunks by XLA runs one iteration after the other by kernels."""
    monkeypatch.setattr(planned_program, "choose", lambda work: choose(a_step(ops=10, convolutions=1e9)))
    configure(1)
    sent = loop(9, lambda x: x * 2.0, np.arange(12, dtype=np.float32))
    np.testing.assert_array_equal(sent, 2.0 * np.arange(9))
    assert tf_ipu_shim.memory_report().devices[0].programs[-1].mode == execution_mode.KERNELS


def rounds(x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y + x), (0, x))[1]


@pytest.mark.parametrize(
    ("function", "rows", "alone"),
    [(lambda x: x @ x, 8, True), (lambda x: x @ x, 256, False), (rounds, 8, False)],
    ids=["short", "long", "loop"],
)
def test_a_short_program_runs_on_the_thread_that_calls_it(ipus, monkeypatch, function, rows, alone):
    nodes = []

    def noting(*arguments, **named):
        program = to_kernels(*arguments, **named)
        nodes.append(program.node)
        return program

    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    monkeypatch.setattr(planned_program, "to_kernels", noting)
    ipus()
    x = floats(rows, rows)
    (found,) = run(function, x)
    expected = 4 * x if function is rounds else x @ x
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-4)
    (node,) = nodes
    assert (node.attr["executor_type"].s == b"SINGLE_THREADED_EXECUTOR") == alone


def woken() -> int:
    """How often the threads of this process but for the caller have been waited for so far."""
    switches = 0
    for task in pathlib.Path("/proc/self/task").iterdir():
        if int(task.name) != threading.get_native_id():
            with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
                (line,) = re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.M)
                switches += int(line)
    return switches


def test_a_short_program_wakes_no_other_thread(ipus, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    ipus()
    function, x = tf.function(lambda x: x + x, jit_compile=True), tf.constant([1.0, 2.0])
    with tf.device("/device:IPU:0"):
        for _ in range(20):
            function(x)
        before = woken()
        for _ in range(400):
            result = function(x)
        assert woken() - before < 200
    np.testing.assert_array_equal(result, [2.0, 4.0])
