"""Programs made eagerly and in functions, and their variables: order of reads and writes, sharing, training."""

import numpy as np
import pytest
import tensorflow as tf
from compiling import IPU, compile_, run
from harness import check_session, configure
from tensorflow.python.eager import context
from tf_ipu_shim.ipu import ipu_compiler, scopes

from tf_ipu_shim.runtime.errors import error_hints

v1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("graph")


def test_compile_called_eagerly():
    with context.eager_mode():
        with tf.device(IPU):
            variable = tf.Variable(1.0)
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(lambda x: x + variable.assign_add(1.0), [tf.constant(2.0)])
        assert result.numpy() == 4.0 and variable.numpy() == 2.0


def test_side_effects_in_a_function_happen_in_order():
    """As in any `tf.function`, whether or not something returned depends on them."""
    with context.eager_mode():
        with tf.device(IPU):
            variable = tf.Variable(1.0)

        def model(x):
            variable.assign_add(x)
            value = variable * 10.0
            variable.assign(value + 1.0)
            return value

        function = tf.function(lambda x: compile_(model, x), autograph=False)
        assert function(tf.constant(2.0))[0].numpy() == 30.0 and variable.numpy() == 31.0
        assert function(tf.constant(2.0))[0].numpy() == 330.0 and variable.numpy() == 331.0


def test_two_programs_in_a_row():
    (first,) = compile_(lambda x: x + 1.0, tf.constant(1.0))
    (second,) = compile_(lambda x: x * 10.0, first)
    assert first.op.name != second.op.name
    assert run(second) == 20.0


def test_collections_reach_the_graph_around():
    def model(x):
        layer = v1.get_variable("w", [2], regularizer=lambda w: 0.5 * tf.reduce_sum(w * w))
        return x + layer

    compile_(model, tf.constant([1.0, 2.0]))
    assert [variable.name for variable in v1.trainable_variables()] == ["w:0"]


def test_variables_are_shared_by_scope_reuse():
    def model(x):
        with v1.variable_scope("shared", reuse=v1.AUTO_REUSE):
            return x * v1.get_variable("w", initializer=2.0)

    results = [compile_(model, tf.constant(float(number)))[0] for number in (1, 2)]
    assert len(v1.global_variables()) == 1
    assert run(results) == [2.0, 4.0]


@pytest.mark.parametrize("name", ["aa_first_by_name", "zz_last_by_name"])
def test_a_value_read_before_a_write_stays(name):
    """The weight is read in a first program of IPU 0, used in a second one too, and written there."""
    configure(2)

    def model(x):
        weight = v1.get_variable("w", initializer=[[2.0, 3.0], [4.0, 5.0]])
        read = weight.read_value()
        with scopes.ipu_shard(0):
            first = tf.matmul(x, read)
        with scopes.ipu_shard(1):
            second = first * 10.0
        with scopes.ipu_shard(0):
            return tf.matmul(second, read, transpose_b=True), weight.assign_add(second, name=name).op

    result = compile_(model, tf.eye(2))
    weight = np.array([[2.0, 3.0], [4.0, 5.0]])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            np.testing.assert_allclose(session.run(result)[0], 10 * weight @ weight.T)
            weight = 11 * weight


def test_an_optimizer_of_a_sharded_model():
    configure(2)
    inputs = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)

    def model(parts, x):
        with parts.shard(0):
            hidden = tf.nn.relu(tf.matmul(x, parts.variable("first", np.linspace(-1, 1, 20).reshape(4, 5))))
        with parts.shard(1):
            out = tf.matmul(hidden, parts.variable("second", np.linspace(-1, 1, 10).reshape(5, 2)))
            loss = tf.reduce_mean(tf.square(out - 1.0))
        return loss, v1.train.AdamOptimizer(0.05).minimize(loss)

    made = check_session(model, [inputs], steps=3)
    assert made.steps[2][0] < made.steps[0][0]


@pytest.mark.parametrize("soft", [False, True])
def test_a_variable_of_the_host_that_a_program_writes(soft):
    """TensorFlow has it on the program's device, or on none."""
    configure()
    with tf.device("/device:CPU:0"):
        variable = v1.get_variable("step", initializer=[1.0, 2.0], use_resource=True)
    with scopes.ipu_scope(IPU):
        program = ipu_compiler.compile(lambda: variable.assign_add([3.0, 4.0]))
    with v1.Session(config=v1.ConfigProto(allow_soft_placement=soft)) as session:
        if soft:
            session.run(variable.initializer)
            ran = v1.RunMetadata()
            values = session.run(program, options=v1.RunOptions(output_partition_graphs=True), run_metadata=ran)
            np.testing.assert_array_equal(values[0], [4.0, 6.0])
            np.testing.assert_array_equal(session.run(variable), [4.0, 6.0])
            nodes = [node for graph in ran.partition_graphs for node in graph.node]
            assert {node.device.rpartition("/")[2] for node in nodes if node.op == "VarHandleOp"} == {"device:IPU:0"}
            return
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            session.run(variable.initializer)
    said = error_hints.hint(raised.value, str(raised.value))
    assert said.startswith("\nA program writes the variable step, which the script has on the host.")


def test_variables_of_the_host_are_given_to_a_program_as_values():
    """TensorFlow has no op take a variable that is on another device than the op is."""
    with tf.device("/device:CPU:0"):
        weight = v1.get_variable("weight", initializer=[2.0, 3.0], use_resource=True)
        scale = v1.get_variable("scale", initializer=5.0, use_resource=True)

    def model(x):
        loss = tf.reduce_sum(scale * weight * weight * x)
        return [loss, *tf.gradients(loss, [weight])]

    loss, gradient = compile_(model, tf.constant(4.0))
    with tf.device("/device:CPU:0"):
        update = v1.train.GradientDescentOptimizer(0.1).apply_gradients([(gradient, weight)])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        value = np.array([2.0, 3.0], np.float32)
        for _ in range(2):
            np.testing.assert_allclose(session.run([loss, update])[0], np.sum(5 * value**2 * 4), rtol=1e-6)
            value = value - np.float32(0.1) * (2 * 5 * 4 * value)
        np.testing.assert_allclose(session.run(weight), value, rtol=1e-6)


@pytest.mark.parametrize("execution_mode", ["xla", "kernels"])
def test_variables_that_are_a_shape(monkeypatch, execution_mode):
    """As in a jit-compiled function of stock TensorFlow: their values are known when the program is compiled."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)
    with context.eager_mode():
        configure(1)
        with tf.device(IPU):
            rows, columns = tf.Variable(3.0), tf.Variable(4)
            values = tf.range(12.0)

            @tf.function(jit_compile=True)
            def reshaped(x):
                result = tf.reshape(x, [tf.cast(rows, tf.int32), columns])
                columns.assign(2)
                rows.assign(6.0)
                return result, tf.fill([columns + 1], x[0])

            first, filled = reshaped(values)
            np.testing.assert_array_equal(first, np.arange(12.0).reshape(3, 4))
            assert filled.shape == [3]
            second, _ = reshaped(values)
            np.testing.assert_array_equal(second, np.arange(12.0).reshape(6, 2))


def test_a_shape_written_to_a_variable_is_not_known():
    with context.eager_mode():
        configure(1)
        with tf.device(IPU):
            rows = tf.Variable(3.0)

            @tf.function(jit_compile=True)
            def reshaped(x, number):
                rows.assign(number)
                return tf.reshape(x, [tf.cast(rows, tf.int32), -1])

            with pytest.raises(tf.errors.InvalidArgumentError, match="must be a compile-time constant"):
                reshaped(tf.range(12.0), tf.constant(2.0))
