"""Reading the marks of `ipu_shard`, spreading them, and where gradients are marked."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import backprop, context, execute
from tf_ipu_shim.ipu import ipu_compiler, loops, optimizers, scopes, sharding

from tf_ipu_shim import plugin

pytestmark = pytest.mark.usefixtures("graph")

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def marked(index, build):
    with scopes.ipu_shard(index):
        return build()


def test_unmarked_ops():
    op = tf.constant(1.0).op
    assert sharding.get_sharding(op) is None
    assert not sharding.has_attr(op, "_XlaSharding")
    assert sharding.has_attr(op, "dtype")
    assert sharding.get_shard_from_colocation(op) is None


def test_shard_from_colocation(graph):
    first = marked(2, lambda: tf.constant(1.0))
    with graph.colocate_with(first.op):
        second = tf.constant(2.0)
    assert sharding.get_shard_from_colocation(second.op) is first.op
    with graph.colocate_with(second.op):  # TensorFlow names the first op of a group
        third = tf.constant(3.0)
    assert sharding.get_shard_from_colocation(third.op) is first.op


def test_dependencies():
    a, b, unrelated = tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)
    with tf.control_dependencies([b]):
        total = a + 1.0
    result = total * 2.0
    found = sharding.dependencies([result.op])
    assert {a.op, b.op, total.op, result.op} <= found and unrelated.op not in found
    assert sharding.dependencies([]) == set()


def test_dependencies_of_a_loop():
    v1.disable_control_flow_v2()
    try:
        _, result = v1.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, tf.constant(1.0)))
    finally:
        v1.enable_control_flow_v2()
    types = {op.type for op in sharding.dependencies([result.op])}
    assert {"Exit", "Switch", "NextIteration", "LoopCond"} <= types  # ends, although the graph has a cycle


def test_propagation(graph):
    x = tf.constant([1.0])
    before = tf.identity(x)
    first = marked(1, lambda: tf.sin(before))
    between = tf.cos(first)
    last = marked(3, lambda: tf.tan(between))
    end = tf.exp(last)
    alone = tf.constant(7.0)
    sharding.propagate_sharding(graph)
    assert [sharding.get_sharding(tensor.op) for tensor in (x, before, first, between, last, end)] == [
        [1],
        [1],
        [1],
        [3],  # users come before operands
        [3],
        [3],
    ]
    assert sharding.get_sharding(alone.op) is None


def test_propagation_prefers_colocation(graph):
    home = marked(2, lambda: tf.constant([1.0]))
    with graph.colocate_with(home.op):
        x = tf.constant([2.0])
    marked(1, lambda: tf.sin(x))
    sharding.propagate_sharding(graph)
    assert sharding.get_sharding(x.op) == [2]


def gradient_ops(graph, before):
    return [op for op in graph.get_operations() if op.name not in before]


def test_tapes_mark_gradients(graph):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        hidden = marked(1, lambda: tf.matmul(x, x))
        result = marked(2, lambda: tf.tanh(hidden))
    before = {op.name for op in graph.get_operations()}
    tape.gradient(result, x)
    marks = {op.type: sharding.get_sharding(op) for op in gradient_ops(graph, before)}
    assert marks["TanhGrad"] == [2]  # whose gradient needs the op's output
    assert marks["MatMul"] == [1]  # whose gradient does not


def test_tapes_leave_unmarked_gradients_alone(graph):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = tf.tanh(x)
    before = {op.name for op in graph.get_operations()}
    tape.gradient(result, x)
    assert all(sharding.get_sharding(op) is None for op in gradient_ops(graph, before))


def test_gradients_of_a_graph_are_marked(graph):
    """Whatever is marked around the call; an op without a mark has a gradient without one."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    hidden = marked(1, lambda: tf.matmul(x, x))
    result = tf.sigmoid(marked(2, lambda: tf.tanh(hidden)))
    before = {op.name for op in graph.get_operations()}
    marked(3, lambda: v1.gradients(result, x))
    made = {op.type: sharding.get_sharding(op) for op in gradient_ops(graph, before)}
    assert made["TanhGrad"] == [2] and made["MatMul"] == [1]
    assert made["SigmoidGrad"] == [3], "marked by the scope around the call"
    before = {op.name for op in graph.get_operations()}
    v1.gradients(result, x)
    assert {op.type: sharding.get_sharding(op) for op in gradient_ops(graph, before)}["SigmoidGrad"] is None


def test_eager_tapes_work_as_before():
    with context.eager_mode():
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert tape.gradient(y, x).numpy() == 6.0


def test_enabling_again_changes_nothing(graph):
    """A second wrapper around the first would see the attributes that the first one adds."""
    enabled = execute.record_gradient
    assert enabled is not backprop.record_gradient, "enabled by importing the library"
    for _ in range(2):
        sharding.enable_sharded_gradient_tape()
    assert execute.record_gradient is enabled
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = tf.tanh(marked(3, lambda: tf.sin(x)))
    before = {op.name for op in graph.get_operations()}
    tape.gradient(result, x)
    marks = {op.type: sharding.get_sharding(op) for op in gradient_ops(graph, before)}
    assert (marks["Cos"], marks["TanhGrad"]) == ([3], None)


def test_rows_of_a_variable_that_two_shards_use(ipus):
    """In a loop, `tf.gather` has its gradient colocated with the variable, which is an op of the graph around it."""
    ipus(2)
    rows, labels = np.array([3, 1, 3]), np.array([0, 2, 4])

    def step(shard, optimizer):
        with shard(0):
            table = v1.get_variable("table", [5, 4], initializer=tf.constant_initializer(np.arange(20) / 10.0))
            x = tf.gather(table, rows)
        with shard(1):
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, tf.matmul(tf.tanh(x), table, transpose_b=True)
            )
        with shard(0):
            loss = tf.reduce_mean(loss)
        return loss, optimizer.minimize(loss)

    def body(total):
        loss, train = step(scopes.ipu_shard, optimizers.ShardedOptimizer(v1.train.GradientDescentOptimizer(0.5)))
        with tf.control_dependencies([train]):
            return total + loss

    with v1.variable_scope("ipu", use_resource=True), scopes.ipu_scope(IPU):
        result = ipu_compiler.compile(lambda: loops.repeat(4, body, [0.0]))
    with v1.variable_scope("cpu", use_resource=True):
        stock = step(lambda _: contextlib.nullcontext(), v1.train.GradientDescentOptimizer(0.5))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        expected = sum(session.run(stock)[0] for _ in range(4))
        np.testing.assert_allclose(session.run(result)[0], expected, rtol=1e-5)
        tables = session.run(v1.global_variables())
    np.testing.assert_allclose(*tables, rtol=1e-5)


@pytest.mark.parametrize("how", ["gradients", "tape"])
def test_gradients_run_on_the_ipu_of_their_op(ipus, how):
    """Forward 0 -> 1, so the gradient comes back 1 -> 0: one exchange each of the hidden layer."""
    ipus(2)
    value = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)

    def model(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            hidden = marked(0, lambda: tf.sin(x))
            loss = marked(1, lambda: tf.reduce_sum(tf.square(hidden)))
        return v1.gradients(loss, x)[0] if how == "gradients" else tape.gradient(loss, x)

    fed = v1.placeholder(tf.float32, value.shape)
    with scopes.ipu_scope(IPU):
        (gradient,) = ipu_compiler.compile(model, [fed])
    library = plugin.load()
    library.reset_counters(0)
    with v1.Session() as session:
        np.testing.assert_allclose(session.run(gradient, {fed: value}), np.sin(2 * value), rtol=1e-5, atol=1e-6)
    for way in (library.exchange(0, 0, 1), library.exchange(0, 1, 0)):
        assert (way.bytes, way.transfers) == (value.nbytes, 1)
