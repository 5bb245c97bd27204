"""XLA's form of a function, which the plugin asks for without Python's lock, and what is made beside."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from harness import check_function
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.core.framework import function_pb2, types_pb2

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.kernels import kernels
from tf_ipu_shim.driver.background import BackgroundTask
from tf_ipu_shim.memory_model.hlo import compiler_ir
from tf_ipu_shim.memory_model.hlo.compiler_ir import Argument

FLOAT = types_pb2.DT_FLOAT


def model(kernel, also, scale):
    """Two variables that look alike, one that does not, one that is written to."""

    def step(x):
        scale.assign_add(tf.reduce_sum(x))
        return tf.nn.relu(x @ kernel) @ also * scale

    return step


def asked_for(concrete, arguments):
    library = [concrete.function_def, *concrete.graph.as_graph_def().library.function]
    return compiler_ir.shared().hlo(concrete.function_def.signature.name, library, arguments)


def test_the_form_is_the_one_that_tensorflow_gives():
    variables = [tf.Variable(tf.ones([4, 4])), tf.Variable(tf.ones([4, 4])), tf.Variable(1.0)]
    function = tf.function(model(*variables), jit_compile=True)
    stock = function.experimental_get_compiler_ir(tf.ones([2, 4]))(stage="hlo_serialized")
    concrete = function.get_concrete_function(tf.TensorSpec([2, 4]))
    shapes = {id(variable.handle): tuple(variable.shape) for variable in variables}
    captured = [Argument(FLOAT, shapes[id(handle)], True) for handle in concrete.captured_inputs]
    form = asked_for(concrete, [Argument(FLOAT, (2, 4)), *captured])
    expected = hlo_pb2.HloModuleProto.FromString(stock)
    for module in (form, expected):
        assert module.name
        module.name = ""
        module.id = 0
        for computation in module.computations:
            for instruction in computation.instructions:
                instruction.metadata.Clear()  # lines of the script; names are checked by what reads them
    names = {computation.name for computation in expected.computations}
    assert {computation.name for computation in form.computations} == names
    assert form == expected


def test_what_xla_refuses_is_said_in_its_words():
    concrete = tf.function(lambda x, size: tf.reshape(x, size)).get_concrete_function(
        tf.TensorSpec([4]), tf.TensorSpec([2], tf.int32)
    )
    with pytest.raises(compiler_ir.ConversionError, match="compile-time constant"):
        asked_for(concrete, [Argument(FLOAT, (4,)), Argument(types_pb2.DT_INT32, (2,))])
    # The context that was asked is not spoilt.
    assert asked_for(tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([3])), [Argument(FLOAT, (3,))])


def test_what_cannot_be_read_is_an_error():
    library, handle = plugin.load(), compiler_ir.shared()._context
    handle.ensure_initialized()
    functions = function_pb2.FunctionDefLibrary().SerializeToString()
    for arguments in ([FLOAT], [FLOAT, 0, -1], [FLOAT, 0, 3, 1, 1]):
        form, reason = library.compiler_ir(handle._context_handle, functions, "none", arguments)
        assert form is None
        assert reason == "the arguments of a function cannot be read"
    form, reason = library.compiler_ir(handle._context_handle, functions, "none", [FLOAT, 0, 1, -5])
    assert form is None
    assert "-5" in reason
    assert library.compiler_ir(handle._context_handle, b"\xff", "none", []) == (None, "not a function library")
    form, reason = library.compiler_ir(handle._context_handle, functions, "no_such_function", [])
    assert form is None
    assert "no_such_function" in reason


def bytes_of(program, library):
    functions = [*program.functions, *library.values()]
    return program.node.SerializeToString(deterministic=True), [
        function.SerializeToString(deterministic=True) for function in functions
    ]


def test_kernels_are_built_in_parallel_and_the_plan_is_unchanged(ipus, monkeypatch):
    """Both threads read the same functions, without a lock of their own."""
    threads, same = [], []
    make = kernels.to_kernels

    def noting(plugin, call, program: LoweredProgram, library, *arguments, **options):
        before = bytes_of(program, library)
        made = make(plugin, call, program, library, *arguments, **options)
        threads.append(threading.current_thread())
        same.append(bytes_of(program, library) == before)
        return made

    monkeypatch.setattr("tf_ipu_shim.driver.planned_program.to_kernels", noting)
    monkeypatch.setattr(compiler_ir, "_LARGE", 0)
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    ipus()

    def net(_, x):
        y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.tanh(y) + tf.reduce_max(y, axis=0)), [0, x])[1]
        return tf.reduce_sum(y * y)

    check_function(net, [np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)])
    # A program as short as this one is made once more, for the thread that calls it.
    assert same == [True, True]
    assert threads[0].name == "ipu_beside"
    assert not threads[0].is_alive()
    assert threads[1] is not threads[0]


def test_parallel_work_runs_once_and_raises_where_it_is_awaited():
    made = []
    with BackgroundTask(lambda: made.append(threading.current_thread()) or "it") as beside:
        beside.begin()
        beside.begin()
        assert beside.result() == "it"
    assert len(made) == 1
    assert made[0] is not threading.current_thread()
    with BackgroundTask(lambda: made.append(threading.current_thread()) or "it") as beside:
        assert beside.result() == "it"
    assert made[1] is threading.current_thread()
    with BackgroundTask(lambda: 1 / 0) as beside:
        beside.begin()
        with pytest.raises(ZeroDivisionError):
            beside.result()
    with BackgroundTask(lambda: 1 / 0) as beside:  # that nobody asks for
        beside.begin()
