"""By kernels, calls and loops are put into the functions around them, and what does nothing is left out.

What results runs in stock TensorFlow beside the function that it was made of: on the CPU, op by op, as it stands.
"""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from harness import CPU, IPU, configure
from tensorflow.core.framework import function_pb2, node_def_pb2
from tensorflow.python.eager import context, execute

from tf_ipu_shim import ipu
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.op_types import functions_in
from tf_ipu_shim.compiler.kernels import kernels
from tf_ipu_shim.compiler.kernels.inlining import inline_calls
from tf_ipu_shim.compiler.kernels.kernels import _inline_all
from tf_ipu_shim.compiler.kernels.simplify import simplify_function
from tf_ipu_shim.driver import planned_program

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
FLOAT = tf.TensorSpec([], tf.float32)
_serial = itertools.count()


def library_of(concrete):
    """A traced function and those that it runs, by name, under the names that they have."""
    graph = concrete.graph.as_graph_def()
    return [concrete.function_def, *graph.library.function]


def together(concrete):
    """What a call of a traced function runs, put together; the call's function is the first."""
    call = node_def_pb2.NodeDef(name="call", op="StatefulPartitionedCall")
    call.attr["f"].func.name = concrete.function_def.signature.name
    return _inline_all(library_of(concrete), call)


def run(functions, concrete, *values):
    """Runs the first of some functions, as `concrete` would run."""
    number = next(_serial)
    renamed = {function.signature.name: f"{function.signature.name}_test_{number}" for function in functions}
    for function in functions:
        made = function_pb2.FunctionDef()
        made.CopyFrom(function)
        made.signature.name = renamed[made.signature.name]
        for node in made.node_def:
            for attribute in node.attr.values():
                for named in functions_in(attribute):
                    named.name = renamed.get(named.name, named.name)
        context.context().add_function_def(made)
    inputs = [*map(tf.convert_to_tensor, values), *concrete.captured_inputs]
    name = renamed[functions[0].signature.name].encode()
    results = execute.execute(name, len(functions[0].signature.output_arg), inputs, [], context.context())
    return [result.numpy() for result in results]


def check(function, *values, variables=()):
    """Compares results, and what variables hold afterwards, of three runs; returns what ran."""
    traced = tf.function(function, autograph=False)
    concrete = traced.get_concrete_function(*[FLOAT] * len(values))
    functions = together(concrete)
    begin = [variable.numpy() for variable in variables]

    def three(call):
        for variable, value in zip(variables, begin):
            variable.assign(value)
        results = [call() for _ in range(3)]
        return results, [variable.numpy() for variable in variables]

    expected = three(lambda: [value.numpy() for value in tf.nest.flatten(concrete(*map(tf.constant, values)))])
    got = three(lambda: run(functions, concrete, *values))
    for wanted, given in zip(expected, got):
        np.testing.assert_equal(given, wanted)
    return functions


def ops_of(functions):
    return [node.op for function in functions for node in function.node_def]


def test_nested_calls_become_the_ops_that_they_run():
    inner = tf.function(lambda x: tf.tanh(x) * 2.0, autograph=False)
    outer = tf.function(lambda x: inner(inner(x)) + x, autograph=False)
    functions = check(lambda x: outer(x) - inner(x), 0.3)
    assert len(functions) == 1
    assert sorted(ops_of(functions)) == sorted(["AddV2", "Sub", *["Const", "Mul", "Tanh"] * 3])


def test_a_call_that_returns_its_argument_is_its_argument():
    swap = tf.function(lambda x, y: (y, x), autograph=False)
    assert ops_of(check(lambda x, y: tf.subtract(*swap(*swap(*swap(x, y)))), 3.0, 5.0)) == ["Sub"]


def test_side_effects_of_calls_keep_their_order():
    one, two = tf.Variable(1.0), tf.Variable(2.0)
    double = tf.function(lambda: one.assign(one * 2.0), autograph=False)
    add = tf.function(lambda: two.assign_add(one), autograph=False)

    def step(x):
        double()
        add()
        double()
        with tf.control_dependencies([one.assign_sub(x)]):
            add()
        return one + two

    functions = check(step, 0.5, variables=[one, two])
    assert not {"PartitionedCall", "StatefulPartitionedCall"} & set(ops_of(functions))


def test_a_function_that_calls_itself_is_still_called():
    function = function_pb2.FunctionDef()
    function.signature.name = "itself"
    function.signature.input_arg.add(name="x", type=1)
    function.signature.output_arg.add(name="y", type=1)
    node = function.node_def.add(name="again", op="PartitionedCall", input=["x"])
    node.attr["Tin"].list.type.append(1)
    node.attr["Tout"].list.type.append(1)
    node.attr["f"].func.name = "itself"
    function.ret["y"] = "again:output:0"
    (left,) = inline_calls([function], node)
    assert [inside.op for inside in left.node_def] == ["PartitionedCall"]


def test_a_loop_is_ops_of_its_own_without_copies():
    def step(x):
        return tf.while_loop(lambda i, y: i < 5.0, lambda i, y: (i + 1.0, tf.tanh(y) * x), [0.0, x])[1]

    functions = check(step, 0.7)
    ops = ops_of(functions)
    assert len(functions) == 1
    assert {"Enter", "Merge", "Switch", "NextIteration", "Exit", "LoopCond"} <= set(ops)
    assert ops.count("Exit") == 1  # of what is returned
    assert ops.count("Identity") <= 1  # which constants of the body wait for
    assert not vocabulary.LOOPS & set(ops)


@pytest.mark.parametrize("trips", [0.0, 1.0, 4.0])
def test_loops_of_few_iterations(trips):
    check(lambda n, x: tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1.0, y * 2.0), [0.0, x])[1], trips, 3.0)


def test_values_that_nobody_needs_leave_a_loop():
    def step(x):
        body = lambda i, y, unused: (i + 1.0, y * x, unused + y)  # noqa: E731
        return tf.while_loop(lambda i, y, unused: i < 3.0, body, [0.0, x, x])[1]

    needed = check(step, 0.7)
    assert ops_of(needed).count("Merge") == ops_of(check(lambda x: step(x) + 0.0, 0.7)).count("Merge")
    kept = check(
        lambda x: tf.while_loop(lambda i, y, z: i < 3.0, lambda i, y, z: (i + 1.0, y * x, z + y), [0.0, x, x])[1:], 0.7
    )
    assert ops_of(kept).count("Merge") == ops_of(needed).count("Merge") + 1


def test_values_change_places_in_a_loop():
    def step(x, y):
        return tf.while_loop(lambda i, a, b: i < 3.0, lambda i, a, b: (i + 1.0, b, a), [0.0, x, y])[1:]

    check(step, 3.0, 5.0)


@pytest.mark.parametrize("trips", [0.0, 1.0, 4.0])
def test_a_value_becomes_one_that_does_not_change(trips):
    """Which is there in the last iteration too, and must not begin another one."""
    check(lambda x, y: tf.while_loop(lambda i, a, b: i < trips, lambda i, a, b: (i + 1.0, b, b), [0.0, x, y]), 3.0, 5.0)
    check(lambda x, y: tf.while_loop(lambda a: a < trips + x, lambda a: (y,), [x]), 3.0, 9.0)
    check(lambda x, y: tf.while_loop(lambda go, a: go, lambda go, a: (a < y, a * 2.0), [x > 2.0, x]), 3.0, 5.0)


def test_what_a_loop_in_a_loop_hands_on_does_not_change_either():
    total = tf.Variable(0.0)

    def step(x, y):
        def body(i, a, b):
            given = tf.while_loop(lambda j, c, d: j < 2.0, lambda j, c, d: (j + 1.0, c * d, d), [0.0, a, y])
            total.assign_add(given[2])  # in no iteration after the last one
            return i + 1.0, given[1], given[2]

        return *tf.while_loop(lambda i, a, b: i < 3.0, body, [0.0, x, x]), total.read_value()

    def without_effects(x, y):
        def body(i, a, b):
            return i + 1.0, *tf.while_loop(lambda j, c, d: j < a, lambda j, c, d: (j + 1.0, c + d, d), [0.0, a, y])[1:]

        return tf.while_loop(lambda i, a, b: i < 3.0, body, [0.0, x, x])

    check(step, 3.0, 5.0, variables=[total])
    check(without_effects, 3.0, 5.0)


def test_iterations_have_their_side_effects_one_after_the_other():
    one, two = tf.Variable(1.0), tf.Variable(0.0)

    def body(i):
        with tf.control_dependencies([one.assign(one * 3.0 - i)]):
            with tf.control_dependencies([two.assign_add(one.read_value())]):
                return i + 1.0

    check(lambda x: tf.while_loop(lambda i: i < 4.0, body, [x]) + [one + 0.0, two + 0.0], 0.0, variables=[one, two])


def test_a_loop_that_ends_by_what_its_body_writes():
    total = tf.Variable(0.0)

    def body(i):
        with tf.control_dependencies([total.assign_add(2.0)]):
            return tf.identity(i) + 1.0

    check(lambda limit: tf.while_loop(lambda i: total.read_value() < limit, body, [0.0]), 7.0, variables=[total])


def test_a_body_that_only_writes_does_so_once_an_iteration():
    total = tf.Variable(0.0)

    def body(i):
        with tf.control_dependencies([total.assign_add(1.0)]):  # which no value of the loop leads to
            return i + 1.0

    check(lambda x: tf.while_loop(lambda i: i < x, body, [0.0]) + [total.read_value()], 3.0, variables=[total])


def test_what_comes_after_a_loop_waits_for_it():
    total = tf.Variable(0.0)

    def step(x):
        total.assign(x)
        tf.while_loop(lambda i: i < 3.0, lambda i: [i + total.assign_add(1.0) * 0.0 + 1.0], [0.0])
        return total.read_value()

    check(step, 10.0, variables=[total])


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_write_after_a_loop_comes_after_all_of_its_iterations(parallel):
    weight = tf.Variable(2.0)

    def body(i, y):
        return i + 1.0, y + weight.read_value()  # which the counter does not wait for

    def step(x):
        left = tf.while_loop(lambda i, y: i < 3.0, body, [0.0, x], parallel_iterations=parallel)
        weight.assign(0.0)
        return left[1]

    function = check(step, 1.0, variables=[weight])[0]
    nodes = {node.name: node for node in function.node_def}
    (write,) = [node for node in function.node_def if node.op == "AssignVariableOp"]
    exits = [nodes[text[1:]] for text in write.input if text[0] == "^"]
    if parallel > 1:
        (done,) = exits
        exits = [nodes[text[1:]] for text in done.input]
    # Where iterations follow each other the last one has ended once a value is out.
    assert [node.op for node in exits] == ["Exit"] * (2 if parallel > 1 else 1)


def test_loops_in_loops():
    total = tf.Variable(0.0)

    def inner(j, y):
        with tf.control_dependencies([total.assign_add(y)]):
            return j + 1.0, y + 0.5

    def outer(i, y):
        return i + 1.0, tf.while_loop(lambda j, z: j < i, inner, [0.0, y])[1] * 2.0

    def step(n, x):
        first = tf.while_loop(lambda i, y: i < n, outer, [0.0, x])[1]
        return tf.while_loop(lambda i, y: i < n, outer, [1.0, first])[1] + total.read_value()

    check(step, 4.0, 1.0, variables=[total])
    check(step, 0.0, 1.0, variables=[total])


def test_a_loop_in_a_loop_that_takes_nothing_of_it():
    total = tf.Variable(0.0)

    def count(i):
        with tf.control_dependencies([total.assign_add(1.0)]):
            return i + 1.0

    def body(i):
        inside = tf.while_loop(lambda j: j < 2.0, count, [0.0])
        with tf.control_dependencies(tf.nest.flatten(inside)):
            return i + 1.0

    check(lambda n: tf.while_loop(lambda i: i < n, body, [0.0]) + [total.read_value()], 3.0, variables=[total])


@pytest.mark.parametrize("flag", [0.0, 1.0])
def test_branches_in_loops_take_what_does_not_change(flag):
    total, other = tf.Variable(0.0), tf.Variable(0.0)

    def body(i, x):
        tf.cond(flag_is_set[0], lambda: total.assign_add(1.0), lambda: other.assign_add(1.0))
        y = tf.cond(i < 2.0, lambda: x * 2.0, lambda: 7.0)
        return i + 1.0, y

    flag_is_set = [None]

    def step(x):
        flag_is_set[0] = x > 0.5
        looped = tf.while_loop(lambda i, y: i < 4.0, body, [0.0, x])
        with tf.control_dependencies(looped):
            return looped[1] + total.read_value() * 100.0 + other.read_value() * 1000.0

    check(step, flag, variables=[total, other])


def test_loops_in_branches():
    total = tf.Variable(0.0)

    def body(i):
        with tf.control_dependencies([total.assign_add(i)]):
            return i + 1.0

    def step(x):
        return tf.cond(x > 1.0, lambda: tf.while_loop(lambda i: i < x, body, [0.0])[0], lambda: total.assign_sub(x))

    check(step, 3.0, variables=[total])
    check(step, 0.5, variables=[total])


def test_the_same_loop_twice_in_place_is_two_loops():
    looped = tf.function(lambda x: tf.while_loop(lambda i, y: i < 3.0, lambda i, y: (i + 1.0, y * x), [0.0, x])[1])
    functions = check(lambda x: looped(x) - looped(x + 1.0), 1.5)
    frames = {node.attr["frame_name"].s for node in functions[0].node_def if node.op == "Enter"}
    assert len(frames) == 2


def test_a_variable_that_is_only_read_is_read_once():
    weight = tf.Variable(2.0)
    both = tf.function(lambda x: x * weight.read_value(), autograph=False)
    assert ops_of(check(lambda x: both(x) + both(x) * weight.read_value(), 3.0)).count("ReadVariableOp") == 1


def test_a_written_variable_is_read_where_the_script_reads_it():
    weight = tf.Variable(2.0)

    def step(x):
        before = weight.read_value()
        weight.assign_add(x)
        return before, weight.read_value()

    assert ops_of(check(step, 3.0, variables=[weight])).count("ReadVariableOp") == 2


def test_gradients_wait_for_each_other_no_more():
    def step(x):
        first, second = tf.tanh(x), tf.exp(x)
        with tf.control_dependencies([tf.group(first, second)]):
            return tf.identity(first), tf.identity(second)

    assert sorted(ops_of(check(step, 0.4))) == ["Exp", "Tanh"]


def test_a_copy_that_waits_for_a_side_effect_still_does():
    total = tf.Variable(1.0)

    def step(x):
        with tf.control_dependencies([tf.group(total.assign_add(x), tf.exp(x))]):
            kept = tf.identity(x)
        return kept, total.read_value()

    functions = check(step, 2.0, variables=[total])
    (copy,) = [node for node in functions[0].node_def if node.op == "Identity" and any(t[0] == "^" for t in node.input)]
    names = {node.name: node.op for node in functions[0].node_def}
    assert "NoOp" in {names[text[1:]] for text in copy.input if text[0] == "^"}


def test_tidying_leaves_the_function_that_it_is_given():
    concrete = tf.function(lambda x: tf.identity(x) + 1.0).get_concrete_function(FLOAT)
    before = concrete.function_def
    copied = function_pb2.FunctionDef()
    copied.CopyFrom(before)
    simplify_function(before)
    assert before == copied


def test_nothing_of_a_loop_with_feeds_runs_on_another_device(own_environment, monkeypatch):
    """Each device would have a part of the loop, and wait for the others in each iteration."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    ran = []

    def by_kernels(*arguments, **options):
        ran.append(kernels.to_kernels(*arguments, **options))
        return ran[-1]

    monkeypatch.setattr(planned_program, "to_kernels", by_kernels)
    configure()
    with tf.Graph().as_default():
        with tf.device(CPU):
            dataset = tf.data.Dataset.from_tensor_slices(np.arange(1.0, 9.0, dtype=np.float32)).repeat()
        infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        with tf.device(IPU):
            total = v1.Variable(0.0, use_resource=True)

        def body(x):
            with tf.control_dependencies([total.assign_add(x, read_value=False)]):
                return outfeed.enqueue(total.read_value())

        with ipu.scopes.ipu_scope(IPU):
            program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(4, body, [], infeed))
        sums = outfeed.dequeue()
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), infeed.initializer])
            session.run(program)
            np.testing.assert_array_equal(session.run(sums), [1.0, 3.0, 6.0, 10.0])
            session.run(program)
            np.testing.assert_array_equal(session.run(sums), [15.0, 21.0, 28.0, 36.0])
    nodes = [node for program in ran for function in program.functions for node in function.node_def]
    assert {vocabulary.INFEED_DEQUEUE, vocabulary.OUTFEED_ENQUEUE, "NextIteration"} <= {node.op for node in nodes}
    assert {node.device for node in nodes} == {IPU}
    assert vocabulary.ITERATOR not in {node.op for node in nodes}
