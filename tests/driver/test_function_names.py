"""A script's functions may have any name: none is taken for one that the lowering made, and none is cut."""

import gc

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import function as defun
from tensorflow.python.ops import functional_ops
from tf_ipu_shim.ipu import config, ipu_outfeed_queue, scopes, utils
from tf_ipu_shim.poplar.driver import config_pb2
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim import ipu, memory_report
from tf_ipu_shim.driver import planned_program as lowering

v1 = tf.compat.v1
IPU = "/device:IPU:0"
NAMES = ["train_chunk", "data_chunk_1_of_2", "noise_seeded", "seeded_step", "model_replica0"]


def jit_compiled(name, function):
    function.__name__ = name
    return tf.function(function, jit_compile=True, autograph=False)


def compiled(function, *fed):
    with scopes.ipu_scope(IPU):
        return ipu.ipu_compiler.compile(function, list(fed))


def called(function, value):
    """Calls a function by its own name: TensorFlow 2 would add a number to it."""
    function.add_to_graph(tf.compat.v1.get_default_graph())
    (result,) = tf.raw_ops.StatefulPartitionedCall(args=[value], Tout=[tf.float32], f=function)
    return result


@pytest.fixture
def lowered(monkeypatch):
    """What programs are lowered to."""
    programs, lower = [], lowering.lower

    def recording(*arguments, **options):
        programs.append(lower(*arguments, **options))
        return programs[-1]

    monkeypatch.setattr(lowering, "lower", recording)
    return programs


@pytest.mark.parametrize("name", NAMES)
def test_a_function_of_any_name_is_lowered_and_reported(ipus, lowered, name):
    options = config_pb2.IpuOptions()
    options.device_config.add().auto_count = 1
    options.profiling.enable_ipu_trace_events = True
    config.configure_ipu_system(options)

    def draw(x):
        return x * 2 + tf.random.uniform([4])

    with tf.device(IPU):
        function = jit_compiled(name, draw)
        result = function(tf.zeros([4])).numpy()
    assert np.all((result >= 0) & (result < 1)) and len(set(result)) > 1
    (program,) = lowered
    assert not program.has_chunks
    (planned,) = memory_report().devices[0].programs
    with tf.device("cpu"):
        events = utils.extract_all_events(gen_ipu_ops.ipu_event_trace())
    (module,) = {event.execute.module_name for event in events if event.type == event.EXECUTE}
    traced = function.get_concrete_function(tf.zeros([4])).name.decode()
    assert traced.startswith(f"__inference_{name}_")
    assert module.decode() == f"a{traced[1:]}"
    assert name in planned.program


@pytest.mark.parametrize("name", NAMES)
def test_errors_name_the_whole_function_and_the_line(ipus, name):
    ipus(1)

    def refused(x):
        return tf.strings.length(tf.strings.as_string(x + tf.random.uniform([2])))

    with tf.device(IPU):
        function = jit_compiled(name, refused)
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            function(tf.ones([2]))
    assert f"when trying to compile graph {name} on" in str(error.value)
    assert f"{__file__}:{refused.__code__.co_firstlineno + 1}, in {refused.__code__.co_name}" in str(error.value)


def test_errors_name_a_file_of_any_name(ipus):
    ipus(1)
    text = "def refused(x):\n    return tf.strings.length(tf.strings.as_string(x))\n"
    names = {"tf": tf}
    exec(compile(text, "my\tmodel\n.py", "exec"), names)
    with tf.device(IPU):
        function = tf.function(names["refused"], jit_compile=True, autograph=False)
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            function(tf.ones([2]))
    assert "my\tmodel\n.py:2, in refused" in str(error.value)


def test_a_function_called_as_the_seeded_copy_of_another(ipus):
    ipus(1)

    @defun.Defun(tf.float32, func_name="draw")
    def draw(x):
        return x + tf.random.uniform([2])

    @defun.Defun(tf.float32, func_name="draw_seeded")
    def draw_seeded(x):
        return x * 3

    with tf.Graph().as_default():
        results = compiled(lambda: [called(draw, [1.0, 5.0]), called(draw_seeded, [1.0, 5.0])])
        with v1.Session() as session:
            drawn, tripled = session.run(results)
    assert np.all((drawn >= [1, 5]) & (drawn < [2, 6]))
    np.testing.assert_array_equal(tripled, [3, 15])


def test_a_function_called_as_a_replica_of_another(ipus):
    ipus(2)

    @defun.Defun(tf.float32, func_name="shift")
    def shift(x):
        return x + 1

    @defun.Defun(tf.float32, func_name="shift_replica1")
    def shift_replica1(x):
        return x * 10 + tf.cast(ipu.replication_ops.replication_index(), tf.float32)

    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    with tf.Graph().as_default():
        run = compiled(lambda: outfeed.enqueue([called(shift, 4.0), called(shift_replica1, 4.0)]))
        dequeued = outfeed.dequeue()
        with v1.Session() as session:
            session.run(run)
            shifted, scaled = session.run(dequeued)
    np.testing.assert_array_equal(shifted, [[5, 5]])
    np.testing.assert_array_equal(scaled, [[40, 41]])


def shifting(by):
    @defun.Defun(tf.float32, func_name="shift")
    def shift(x):
        return x + by

    return shift


def test_two_programs_with_functions_of_one_name(ipus):
    ipus(1)
    with tf.Graph().as_default():
        one = compiled(lambda: called(shifting(1.0), 1.0))
        ten = compiled(lambda: called(shifting(10.0), 1.0))
        with v1.Session() as session:
            assert session.run([one, ten]) == [[2], [11]]


def test_programs_of_imported_graphs_with_functions_of_one_name(ipus):
    ipus(1)
    results = []
    joined = tf.Graph()
    for by in (1.0, 10.0):
        with tf.Graph().as_default() as graph:
            (result,) = compiled(lambda by=by: called(shifting(by), 1.0))
        with joined.as_default():
            results.extend(tf.import_graph_def(graph.as_graph_def(), return_elements=[result.name]))
    with v1.Session(graph=joined) as session:
        assert session.run(results) == [2, 11]


def test_loops_of_two_programs_with_functions_of_one_name(ipus):
    ipus(1)

    def repeated(by):
        @defun.Defun(tf.int32, tf.float32, func_name="condition")
        def condition(index, x):
            return index < 3

        @defun.Defun(tf.int32, tf.float32, func_name="body")
        def body(index, x):
            return index + 1, x + by

        return functional_ops.While([0, 0.0], condition, body)[1]

    with tf.Graph().as_default():
        one, ten = compiled(lambda: repeated(1.0)), compiled(lambda: repeated(10.0))
        with v1.Session() as session:
            assert session.run([one, ten]) == [[3], [30]]


def test_a_loop_in_chunks_says_so(ipus, lowered):
    ipus(1)
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    with tf.Graph().as_default():
        program = compiled(lambda: ipu.loops.repeat(8, lambda x: (x + 1, outfeed.enqueue(x)), [0.0]))
        with v1.Session() as session:
            assert session.run(program) == [8]
    assert lowered[0].has_chunks


def test_functions_of_dropped_programs_leave_no_names():
    """The eager context keeps the script's own until it drops them itself."""
    strategy = ipu.ipu_strategy.IPUStrategy()
    known = []
    with strategy.scope():
        for number in range(3):
            function = jit_compiled("step", lambda x, number=number: x * number)
            assert float(strategy.run(function, [tf.constant(2.0)])) == 2.0 * number
            during = set(context.context().list_function_names())
            del function
            gc.collect()
            known.append(set(context.context().list_function_names()))
            assert any("_ipu0_phase" in name for name in during - known[-1])
    assert not any("_ipu0_phase" in name for name in known[-1] - known[0])
