"""Which trace events there are, in which order, and what counts as a compilation."""

import json
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import config, ipu_compiler, scopes, utils
from tf_ipu_shim.poplar.driver import config_pb2
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim import plugin
from tf_ipu_shim.runtime import devices, trace

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
BEGIN, END, TO_DEVICE, TO_HOST, LOAD, EXECUTE = range(6)
ONES = np.ones([2, 2], np.float32)


def configured(events=True, transfers=True, ipus=(1,)):
    options = config_pb2.IpuOptions()
    for number in ipus:
        options.device_config.add().auto_count = number
    options.profiling.enable_ipu_trace_events = events
    options.profiling.enable_io_trace = transfers
    config.configure_ipu_system(options)
    for ordinal in range(len(ipus)):
        plugin.load().reset_counters(ordinal)


def events():
    with tf.device("cpu"):
        return utils.extract_all_events(gen_ipu_ops.ipu_event_trace())


def kinds():
    return [event.type for event in events()]


def counts(ordinal=0):
    library = plugin.load()
    return library.programs_lowered(ordinal), library.programs_compiled(ordinal), library.programs_run(ordinal)


def compiled(function, *fed, device=IPU):
    with scopes.ipu_scope(device):
        return ipu_compiler.compile(function, list(fed))


def placeholder(shape=(2, 2)):
    return v1.placeholder(tf.float32, shape)


def variable(name="weights", value=1.0, shape=(2, 2)):
    with scopes.ipu_scope(IPU):
        return v1.get_variable(name, shape, initializer=v1.constant_initializer(value), use_resource=True)


def test_a_program_without_variables(graph):
    configured()
    fed = placeholder()
    product = compiled(lambda x: tf.matmul(x, x), fed)
    before = time.time()
    with v1.Session() as session:
        session.run(product, {fed: ONES})
        first = utils.extract_all_events(session.run(gen_ipu_ops.ipu_event_trace()))
        session.run(product, {fed: ONES})
        again = utils.extract_all_events(session.run(gen_ipu_ops.ipu_event_trace()))
    assert [event.type for event in first] == [BEGIN, END, LOAD, EXECUTE]
    assert [event.type for event in again] == [EXECUTE]
    begin, end, load, execute = first
    names = {begin.compile_begin.module_name, end.compile_end.module_name, load.load_engine.module_name}
    assert names == {execute.execute.module_name} == {again[0].execute.module_name}
    assert names.pop().startswith(b"cluster")
    times = [event.timestamp for event in first]
    assert times == sorted(times) and before <= times[0] and times[-1] <= time.time()
    assert 0 < end.compile_end.duration == pytest.approx(1e6 * (end.timestamp - begin.timestamp), abs=2)
    assert {event.ordinal for event in first} == {0}


def test_variables_are_transferred_when_they_must_be(graph):
    configured()
    fed, weights = placeholder(), variable()
    step = compiled(lambda x: weights.assign_add(tf.matmul(x, weights)), fed)
    other = compiled(lambda x: tf.matmul(x, x), fed)
    trace_op = gen_ipu_ops.ipu_event_trace()

    with v1.Session() as session:

        def after(*fetches):
            session.run(fetches, {fed: ONES})
            return utils.extract_all_events(session.run(trace_op))

        session.run(v1.global_variables_initializer())
        first = after(step)
        assert [event.type for event in first] == [BEGIN, END, LOAD, TO_DEVICE, EXECUTE]
        sent = json.loads(first[3].data_transfer.data_transfer)
        assert sent["total_size"] == 16
        assert [(tensor["name"], tensor["size"]) for tensor in sent["tensors"]] == [("1.0", 16)]

        assert [event.type for event in after(step)] == [EXECUTE]
        assert weights.eval(session)[0, 0] == 9
        (read,) = utils.extract_all_events(session.run(trace_op))
        assert read.type == TO_HOST
        assert [tensor["name"] for tensor in json.loads(read.data_transfer.data_transfer)["tensors"]] == ["out_1.0"]
        weights.eval(session)
        assert session.run(trace_op).size == 0

        assert [event.type for event in after(step)] == [TO_DEVICE, EXECUTE]
        weights.load(ONES, session)
        assert [event.type for event in after(step)] == [TO_DEVICE, EXECUTE]
        assert [event.type for event in after(other)] == [BEGIN, END, TO_HOST, LOAD, EXECUTE]
        assert [event.type for event in after(step)] == [LOAD, TO_DEVICE, EXECUTE]


def test_variables_that_are_only_read_stay(graph):
    configured()
    fed, weights = placeholder(), variable()
    product = compiled(lambda x: tf.matmul(x, weights), fed)
    trace_op = gen_ipu_ops.ipu_event_trace()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(product, {fed: ONES})
        weights.eval(session)
        session.run(product, {fed: ONES})
        found = utils.extract_all_types_from_event_trace(session.run(trace_op))
    assert found == [BEGIN, END, LOAD, TO_DEVICE, EXECUTE, EXECUTE]


@pytest.mark.parametrize(
    ("flags", "transfers", "expected"),
    [
        ("--synthetic_data_categories=parameters", True, [BEGIN, END, LOAD, EXECUTE]),
        ("", False, [BEGIN, END, EXECUTE]),
    ],
    ids=["synthetic parameters", "not wanted"],
)
def test_no_transfers_are_recorded(graph, monkeypatch, flags, transfers, expected):
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    configured(transfers=transfers)
    fed, weights = placeholder(), variable()
    step = compiled(lambda x: weights.assign_add(tf.matmul(x, weights)), fed)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(step, {fed: ONES})
        weights.eval(session)
        found = utils.extract_all_types_from_event_trace(session.run(gen_ipu_ops.ipu_event_trace()))
    assert found == expected


def test_nothing_is_recorded_unless_asked_for(graph):
    configured(events=False)
    fed = placeholder()
    product = compiled(lambda x: tf.matmul(x, x), fed)
    with v1.Session() as session:
        session.run(product, {fed: ONES})
        assert session.run(gen_ipu_ops.ipu_event_trace()).size == 0
    assert counts() == (1, 1, 1)


def test_a_changed_shape_compiles_once_more(graph):
    configured()
    fed = placeholder([None, 2])
    total = compiled(lambda x: tf.reduce_sum(tf.matmul(x, tf.ones([2, 3]))), fed)
    with v1.Session() as session:
        results = [session.run(total, {fed: np.ones([rows, 2])})[0] for rows in (2, 2, 3, 2, 3)]
        found = utils.extract_all_types_from_event_trace(session.run(gen_ipu_ops.ipu_event_trace()))
    assert results == [12, 12, 18, 12, 18]
    assert counts() == (2, 2, 5)
    assert found.count(BEGIN) == found.count(END) == 2 and found.count(EXECUTE) == 5
    assert found.count(LOAD) == 4  # each shape is an engine of its own


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.constant(2.0) * 3,
        lambda x: x,
        lambda x: tf.stop_gradient(tf.identity(x)),
        lambda x: tf.shape(tf.matmul(x, x)),
        lambda x: [x, tf.zeros([3])],
    ],
    ids=["constant", "argument", "passed on", "shape", "both"],
)
def test_what_needs_no_engine_compiles_nothing(graph, function):
    configured()
    fed = placeholder()
    result = compiled(function, fed)
    with v1.Session() as session:
        session.run(result, {fed: ONES})
        assert session.run(gen_ipu_ops.ipu_event_trace()).size == 0
    lowered, programs, runs = counts()
    assert (lowered, programs, runs) == (1, 0, 1)


def test_scalars_need_no_engine_and_vectors_do(graph):
    configured()
    scalar, vector = placeholder([]), placeholder([2])
    small, large = compiled(lambda x: x * 2 + 1, scalar), compiled(lambda x: x * 2 + 1, vector)
    with v1.Session() as session:
        assert session.run(small, {scalar: 3}) == [7] and counts() == (1, 0, 1)
        session.run(large, {vector: [1, 2]})
    assert counts() == (2, 1, 2)


def test_assigning_a_constant_needs_no_engine(graph):
    configured()
    weights = variable()
    assign = compiled(lambda: weights.assign(tf.zeros([2, 2])))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(assign)
        assert weights.eval(session).tolist() == [[0, 0], [0, 0]]
    assert counts()[1] == 0


def test_a_first_run_that_fails_is_no_compilation(graph):
    configured()
    fed, weights = placeholder(), variable()
    step = compiled(lambda x: weights.assign_add(tf.matmul(x, weights)), fed)
    trace_op = gen_ipu_ops.ipu_event_trace()
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(step, {fed: ONES})
        assert utils.extract_all_types_from_event_trace(session.run(trace_op)) == [BEGIN]
        session.run(v1.global_variables_initializer())
        session.run(step, {fed: ONES})
        assert utils.extract_all_types_from_event_trace(session.run(trace_op)) == [END, LOAD, TO_DEVICE, EXECUTE]
    assert counts()[1] == 1


def test_each_device_has_its_own_engine(graph):
    configured(ipus=(1, 1))
    fed = placeholder()
    products = [compiled(lambda x: tf.matmul(x, x), fed, device=f"/device:IPU:{i}") for i in range(2)]
    with v1.Session() as session:
        for _ in range(2):
            for product in products:
                session.run(product, {fed: ONES})
        found = utils.extract_all_events(session.run(gen_ipu_ops.ipu_event_trace()))
    for ordinal in range(2):
        own = [event.type for event in found if event.ordinal == ordinal]
        assert own == [BEGIN, END, LOAD, EXECUTE, EXECUTE]
        assert counts(ordinal) == (1, 1, 2)


def test_jit_compiled_functions_have_events_too():
    configured()

    @tf.function(jit_compile=True)
    def product(x):
        return tf.matmul(x, x)

    with tf.device(IPU):
        product(tf.constant(ONES))
        first = events()
        product(tf.constant(ONES))
    assert [event.type for event in first] == [BEGIN, END, LOAD, EXECUTE]
    assert kinds() == [EXECUTE]
    assert b"product" in first[0].compile_begin.module_name


def test_plain_ops_of_a_step_are_one_program(graph):
    """As on a real system, which compiles what a step runs on a device; each set of fetches is another program."""
    configured()
    fed = placeholder()
    with tf.device(IPU):
        product = tf.matmul(fed, fed)
        total = tf.reduce_sum(product)
    trace_op = gen_ipu_ops.ipu_event_trace()
    with v1.Session() as session:

        def after(*fetches):
            session.run(fetches, {fed: ONES})
            return utils.extract_all_types_from_event_trace(session.run(trace_op))

        assert after(product) == [BEGIN, END, LOAD, EXECUTE]
        assert after(product) == [EXECUTE]
        assert after(total) == [BEGIN, END, LOAD, EXECUTE]
        assert after(product) == [LOAD, EXECUTE]
        with tf.device("cpu"):
            session.run(gen_ipu_ops.ipu_clear_all_xla_compilation_caches())
        assert after(product) == [BEGIN, END, LOAD, EXECUTE]
    with v1.Session() as session:
        assert after(product) == [BEGIN, END, LOAD, EXECUTE]


def test_plain_ops_that_need_no_engine_make_no_events(graph):
    configured()
    fed, weights = placeholder(), variable()
    with tf.device(IPU):
        handed_on, shape, scalar = (
            tf.identity(fed),
            tf.shape(fed),
            tf.constant(2.0) + v1.placeholder_with_default(3.0, []),
        )
        assigned = weights.assign(tf.zeros([2, 2]))
    with v1.Session() as session:
        session.run([handed_on, shape, scalar, assigned], {fed: ONES})
        weights.eval(session)
        assert session.run(gen_ipu_ops.ipu_event_trace()).size == 0


def transfers(session):
    """The kind of each event since the last call, and the names of what is transferred."""
    found = utils.extract_all_events(session.run(gen_ipu_ops.ipu_event_trace()))
    return [(event.type, named(event)) if event.type in (TO_DEVICE, TO_HOST) else event.type for event in found]


def named(event):
    return [tensor["name"] for tensor in json.loads(event.data_transfer.data_transfer)["tensors"]]


def test_variables_of_plain_ops_stay_on_the_device(graph):
    """What is fed and what is fetched is streamed; variables go there once, and come back when the host reads one."""
    configured()
    fed, weights, bias = placeholder(), variable(), variable("bias", 2.0, [2])
    with tf.device(IPU):
        result = tf.reduce_sum(tf.matmul(fed, weights) + bias)
        step = v1.train.GradientDescentOptimizer(0.5).minimize(result)
    with v1.Session() as session:

        def after(*fetches):
            session.run(fetches, {fed: ONES})
            return transfers(session)

        session.run(v1.global_variables_initializer())
        assert transfers(session) == []
        assert after(step, result) == [BEGIN, END, LOAD, (TO_DEVICE, ["1.0", "2.0"]), EXECUTE]
        assert after(step, result) == after(step, result) == [EXECUTE]
        np.testing.assert_array_equal(session.run(weights), np.full([2, 2], 1 - 3 * 0.5 * 2))
        assert transfers(session) == [(TO_HOST, ["out_1.0", "out_2.0"])]
        session.run([weights, bias])
        assert transfers(session) == []
        assert after(step, result) == [(TO_DEVICE, ["1.0", "2.0"]), EXECUTE]
        weights.load(ONES, session)
        assert after(step, result) == [(TO_DEVICE, ["1.0", "2.0"]), EXECUTE]
        # Another program: what the last one wrote comes back first.
        assert after(result) == [
            BEGIN,
            END,
            (TO_HOST, ["out_1.0", "out_2.0"]),
            LOAD,
            (TO_DEVICE, ["1.0", "2.0"]),
            EXECUTE,
        ]
        assert after(result) == [EXECUTE]
        session.run([weights, bias])
        assert transfers(session) == []  # it has written none


def test_plain_ops_with_a_branch_that_is_not_taken_have_events(graph):
    configured()
    fed = placeholder()
    with tf.device(IPU):
        v1.disable_control_flow_v2()
        try:
            result = v1.cond(tf.reduce_sum(fed) > 0, lambda: tf.matmul(fed, fed), lambda: tf.abs(fed - 1))
        finally:
            v1.enable_control_flow_v2()
    with v1.Session() as session:
        session.run(result, {fed: ONES})
        session.run(result, {fed: ONES})
        assert transfers(session) == [BEGIN, END, LOAD, EXECUTE, EXECUTE]


def test_a_step_s_host_output_is_not_a_variable_of_the_last_step(graph):
    configured()
    fed, weights = placeholder(), variable()
    with tf.device(IPU):
        step = weights.assign_add(tf.matmul(fed, weights))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(step, {fed: ONES})
        transfers(session)
        for _ in range(8):
            session.run(step, {fed: ONES})
        assert transfers(session) == 8 * [EXECUTE]


def test_plain_ops_make_events_where_they_are_wanted(graph):
    fed = placeholder()
    with tf.device(IPU):
        product = tf.matmul(fed, fed)
    for events, transfers, expected in (
        (True, False, [BEGIN, END, EXECUTE]),
        (False, False, []),
        (True, True, [BEGIN, END, LOAD, EXECUTE]),
    ):
        devices.reset()
        configured(events=events, transfers=transfers)
        with v1.Session() as session:
            session.run(product, {fed: ONES})
            found = session.run(gen_ipu_ops.ipu_event_trace())
        assert utils.extract_all_types_from_event_trace(found) == expected


def test_a_cleared_cache_compiles_again(graph):
    configured()
    fed = placeholder()
    product = compiled(lambda x: tf.matmul(x, x), fed)
    with v1.Session() as session:
        session.run(product, {fed: ONES})
        with tf.device("cpu"):
            session.run(gen_ipu_ops.ipu_clear_all_xla_compilation_caches())
        session.run(product, {fed: ONES})
        found = utils.extract_all_types_from_event_trace(session.run(gen_ipu_ops.ipu_event_trace()))
    assert found == [BEGIN, END, LOAD, EXECUTE] * 2


def test_a_reset_forgets_what_was_not_fetched(graph):
    configured()
    fed = placeholder()
    product = compiled(lambda x: tf.matmul(x, x), fed)
    with v1.Session() as session:
        session.run(product, {fed: ONES})
        config.reset_ipu_configuration()
        assert session.run(gen_ipu_ops.ipu_event_trace()).size == 0


def test_threads_lose_and_share_no_event(graph):
    configured()
    fed = placeholder()
    product = compiled(lambda x: tf.matmul(x, x), fed)
    trace_op = gen_ipu_ops.ipu_event_trace()
    taken, runs, threads = [], 50, 4
    with v1.Session() as session:

        def work():
            for _ in range(runs):
                session.run(product, {fed: ONES})
                taken.append(session.run(trace_op))

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        taken.append(session.run(trace_op))
    found = utils.extract_all_types_from_event_trace(taken)
    assert [found.count(kind) for kind in (BEGIN, END, LOAD, EXECUTE)] == [1, 1, 1, runs * threads]


def test_templates_of_events():
    profiling = config_pb2.IpuOptions.Profiling(enable_ipu_trace_events=True, enable_io_trace=True)
    tensors = [trace.DeviceTensor(2, 8), trace.DeviceTensor(3, 4, output=1)]
    events = trace.events_of(1, "m", profiling, tensors, tensor_map="{}", info="[]")
    assert (list(events.variables), list(events.written)) == ([2, 3], [3])
    transfers = events.transfers
    made = [events.compile_begin, events.compile_end]
    made += [transfers.load_engine, transfers.host_to_device, transfers.device_to_host, events.execute]
    assert [event.type for event in made] == [BEGIN, END, LOAD, TO_DEVICE, TO_HOST, EXECUTE]
    assert all(event.ordinal == 1 and event.timestamp == 0 for event in made)
    assert (made[1].compile_end.tensor_map, made[1].compile_end.instruction_info) == (b"{}", b"[]")
    assert json.loads(made[3].data_transfer.data_transfer)["total_size"] == 12
    assert json.loads(made[4].data_transfer.data_transfer)["tensors"] == [
        {"name": "out_1.0", "parameter_index": 1, "flat_tensor_index": 0, "size": 4}
    ]
    profiling.enable_io_trace = False
    assert not trace.events_of(1, "m", profiling, tensors).HasField("transfers")
