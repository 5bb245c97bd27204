"""By kernels, ops that others only wait for do not run, and the order of what has side effects stays."""

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim.compiler.kernels import kernels
from tf_ipu_shim.compiler.passes.dead_code_elimination import eliminate_dead_code

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


def definition(function, *shapes):
    signature = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    return tf.function(function, autograph=False).get_concrete_function(*signature).function_def


def ops_of(function):
    return [node.op for node in function.node_def]


def waits_for(function, name):
    """All that an op waits for, for data or order."""
    inputs = {node.name: [text.lstrip("^").split(":")[0] for text in node.input] for node in function.node_def}
    found, waiting = set(), [name]
    while waiting:
        for other in inputs.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def named(function, op):
    return [node.name for node in function.node_def if node.op == op]


def test_the_gradient_for_the_pictures_is_left_out():
    filters = tf.constant(np.ones((3, 3, 1, 2), np.float32))

    def gradient(images):
        """As `tf.gradients` makes it: the one for the filters waits for both."""
        made = tf.nn.conv2d(images, filters, 1, "VALID")
        of_images = v1.nn.conv2d_backprop_input([2, 6, 6, 1], filters, made, [1, 1, 1, 1], "VALID")
        of_filters = v1.nn.conv2d_backprop_filter(images, [3, 3, 1, 2], made, [1, 1, 1, 1], "VALID")
        with tf.control_dependencies([tf.group(of_images, of_filters)]):
            return tf.identity(of_filters)

    before = definition(gradient, (2, 6, 6, 1))
    after = eliminate_dead_code(before)
    assert "Conv2DBackpropInput" in ops_of(before)
    assert "Conv2DBackpropInput" not in ops_of(after)
    assert {"Conv2D", "Conv2DBackpropFilter"} <= set(ops_of(after))
    assert dict(after.ret) == dict(before.ret)


def test_who_waited_for_an_idle_op_waits_for_what_it_waited_for():
    first, second = tf.Variable(1.0), tf.Variable(1.0)

    def step(x):
        with tf.control_dependencies([first.assign_add(x)]):
            idle = tf.exp(tf.identity(x) * 2.0)
        with tf.control_dependencies([idle]):
            second.assign_sub(x)

    before = definition(step, ())
    after = eliminate_dead_code(before)
    assert {"Exp", "Mul"} <= set(ops_of(before))
    assert not {"Exp", "Mul", "Identity"} & set(ops_of(after))
    (update,) = named(after, "AssignSubVariableOp")
    assert set(named(after, "AssignAddVariableOp")) <= waits_for(after, update)
    assert set(after.signature.control_output) == set(after.control_ret)
    assert set(after.control_ret.values()) <= {node.name for node in after.node_def}


def test_a_consumed_read_stays_and_precedes_the_write():
    variable, unread = tf.Variable(1.0), tf.Variable(2.0)

    def step(x):
        value = variable.read_value()
        unread.read_value()
        with tf.control_dependencies([value]):
            variable.assign(x)
        return value

    after = eliminate_dead_code(definition(step, ()))
    (read,) = named(after, "ReadVariableOp")
    (write,) = named(after, "AssignVariableOp")
    assert read in waits_for(after, write)


def test_a_function_where_everything_is_needed_stays_as_it_is():
    before = definition(lambda x: tf.exp(x) + 1.0, ())
    assert eliminate_dead_code(before) is before


def test_a_session_s_training_runs_no_gradient_of_its_images(graph, ipus, monkeypatch):
    """The weights are those of the same graph on the CPU, and what runs has no such op."""
    from tf_ipu_shim.ipu import ipu_compiler, scopes

    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    ipus(1)
    ran = []
    stock = kernels.eliminate_dead_code
    monkeypatch.setattr(kernels, "eliminate_dead_code", lambda function: ran.append(stock(function)) or ran[-1])
    rng = np.random.default_rng(3)
    pictures, start = rng.normal(size=(2, 6, 6, 1)).astype("f"), rng.normal(size=(3, 3, 1, 2)).astype("f")

    def model(name, x):
        filters = v1.get_variable(name, initializer=start, use_resource=True)
        loss = tf.reduce_sum(tf.square(tf.nn.conv2d(x, filters, 1, "VALID")))
        train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, var_list=[filters])
        with tf.control_dependencies([train]):
            return tf.identity(loss)

    x = v1.placeholder(tf.float32, pictures.shape)
    with scopes.ipu_scope("/device:IPU:0"):
        (on_ipu,) = ipu_compiler.compile(lambda x: model("on_ipu", x), [x])
    with tf.device("/device:CPU:0"):
        on_cpu = model("on_cpu", x)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(2):
            got, expected = session.run([on_ipu, on_cpu], {x: pictures})
            np.testing.assert_allclose(got, expected, rtol=1e-5)
        of_ipu, of_cpu = session.run(v1.global_variables())
        np.testing.assert_allclose(of_ipu, of_cpu, rtol=1e-5)
    ops = {op for function in ran for op in ops_of(function)}
    assert "Conv2DBackpropFilter" in ops
    assert "Conv2DBackpropInput" not in ops
