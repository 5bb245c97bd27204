"""A variable taken from the results of a loop, call or branch is the one that went in."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from function_builder import RESOURCE
from tensorflow.core.framework import function_pb2, types_pb2
from tf_ipu_shim.ipu import ipu_compiler
from tf_ipu_shim.ipu.scopes import ipu_scope, outside_compilation_scope

from tf_ipu_shim import memory_report
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.passes import forward_resource_handles
from tf_ipu_shim.memory_model.hlo import compiler_ir

v1 = tf.compat.v1


def handle_and_number(function):
    return function.get_concrete_function(tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.resource))


@tf.function(autograph=False)
def less_than_three(number, handle):
    return number < 3


@tf.function(autograph=False)
def add_one(number, handle):
    tf.raw_ops.AssignAddVariableOp(resource=handle, value=tf.ones([2]))
    return number + 1, tf.identity(handle)


def looped(handle):
    results = tf.raw_ops.While(
        input=[tf.constant(0), handle], cond=handle_and_number(less_than_three), body=handle_and_number(add_one)
    )
    return results[1]


def called(handle):
    function = handle_and_number(add_one)
    return tf.raw_ops.StatefulPartitionedCall(args=[tf.constant(0), handle], Tout=[tf.int32, tf.resource], f=function)[
        1
    ]


def branched(handle):
    function = handle_and_number(add_one)
    return tf.raw_ops.If(
        cond=tf.constant(True),
        input=[tf.constant(0), handle],
        Tout=[tf.int32, tf.resource],
        then_branch=function,
        else_branch=function,
    )[1]


@pytest.mark.parametrize("handed_back, added", [(looped, 3), (called, 1), (branched, 1)])
@pytest.mark.parametrize("taken_apart", [False, True])
def test_reads_what_was_written_before(ipus, execution_mode, handed_back, added, taken_apart):
    """Where the host is in between, the variable is read in another XLA program than the one that it came back from."""
    ipus(1)

    def program(x):
        variable = v1.get_variable(
            "variable", [2], initializer=v1.constant_initializer([10.0, 20.0]), use_resource=True
        )
        handle = handed_back(variable.handle)
        if taken_apart:
            with outside_compilation_scope():
                x = tf.reverse(x, [0])
        return x * tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, [2])
        with ipu_scope("/device:IPU:0"):
            compiled = ipu_compiler.compile(program, [x])
        session.run(v1.global_variables_initializer())
        (result,) = session.run(compiled, {x: [1.0, 2.0]})
    factors = [2.0, 1.0] if taken_apart else [1.0, 2.0]
    np.testing.assert_array_equal(result, np.multiply(factors, [10.0 + added, 20.0 + added]))
    assert memory_report().devices[0].programs


def node(definition, name, op, *inputs, types=(), **functions):
    made = definition.node_def.add(name=name, op=op, input=inputs)
    for attribute, function in functions.items():
        made.attr[attribute].func.name = function
    made.attr["T"].list.type.extend(types)
    return made


def two_handles(name):
    definition = function_pb2.FunctionDef()
    definition.signature.name = name
    for argument in ("a", "b"):
        definition.signature.input_arg.add(name=argument, type=RESOURCE)
        definition.signature.output_arg.add(name=f"result_{argument}", type=RESOURCE)
    return definition


def test_a_loop_that_exchanges_its_variables_keeps_them():
    """The second iteration has them the other way round, so that nobody knows which one comes out."""
    body = two_handles("body")
    body.ret["result_a"], body.ret["result_b"] = "b", "a"
    main = two_handles("main")
    node(main, "loop", "While", "a", "b", types=[RESOURCE, RESOURCE], cond="cond", body="body")
    main.ret["result_a"], main.ret["result_b"] = "loop:output:0", "loop:output:1"
    functions = Functions({"main": main, "body": body}, "main")
    forward_resource_handles.forward_handles(functions)
    assert functions["main"].returns == ["loop:output:0", "loop:output:1"]


def test_handles_of_nobody_knows_what_are_refused():
    """TensorFlow ended the process."""
    definition = two_handles("handles_of_nobody")
    definition.ret["result_a"], definition.ret["result_b"] = "a", "b"
    handles = [compiler_ir.Argument(types_pb2.DT_RESOURCE, ())] * 2
    with pytest.raises(compiler_ir.ConversionError, match="handle"):
        compiler_ir.shared().hlo("handles_of_nobody", [definition], handles)
