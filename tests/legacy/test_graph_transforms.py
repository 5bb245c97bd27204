"""What TensorFlow 1.15 had for graphs and training, and scripts for IPUs use: transforms, LARS."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

from tensorflow.contrib.opt.python.training.lars_optimizer import LARSOptimizer  # isort: skip
from tensorflow.tools.graph_transforms import TransformGraph  # isort: skip

from tf_ipu_shim import errors

v1 = tf.compat.v1


@pytest.fixture
def model(graph):
    x = v1.placeholder(tf.float32, [2], name="x")
    folded = tf.add(tf.constant(1.0), tf.constant(2.0), name="three")
    kept = tf.identity(x, name="kept")
    with tf.control_dependencies([kept]):
        passed = tf.identity(x, name="passed")
    tf.multiply(passed, folded, name="y")
    tf.multiply(x, 5.0, name="unused")
    return graph.as_graph_def()


def value(graph_def):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.import_graph_def(graph_def, name="")
        return session.run("y:0", {"x:0": [1.0, 2.0]}).tolist()


@pytest.mark.parametrize("names", [(["x"], ["y"]), (["x:0"], ["y:0"])])
def test_transforms(model, names):
    before = model.SerializeToString(deterministic=True)
    chosen = ["remove_nodes(op=Identity, op=CheckNumerics)", "strip_unused_nodes", "fold_constants(ignore_errors=true)"]
    made = TransformGraph(model, *names, chosen)
    ops = {node.name: node.op for node in made.node}
    assert "unused" not in ops and ops["kept"] == "Identity", "what something runs after stays"
    assert sorted(op for op in ops.values() if op != "Identity") == ["Const", "Mul", "Placeholder"]
    assert value(made) == [3.0, 6.0]
    assert model.SerializeToString(deterministic=True) == before


def test_order_of_execution(model):
    nodes = list(model.node)[::-1]
    del model.node[:]
    model.node.extend(nodes)
    made = TransformGraph(model, ["x"], ["y"], ["sort_by_execution_order"])
    seen = set()
    for node in made.node:
        assert {name.lstrip("^").split(":")[0] for name in node.input} <= seen
        seen.add(node.name)
    assert len(seen) == len(model.node) and value(made) == [3.0, 6.0]


def test_transforms_that_are_refused(model):
    with pytest.raises(errors.UnsupportedError, match="'quantize_weights' is not emulated, only fold_constants"):
        TransformGraph(model, ["x"], ["y"], ["quantize_weights"])
    for text in ("Strip unused", "remove_nodes(Identity)"):
        with pytest.raises(ValueError, match="is not a transform|is not an argument"):
            TransformGraph(model, ["x"], ["y"], [text])


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("skipped", [None, ["w"]])
def test_lars(graph, nesterov, skipped):
    begin = np.float32([[3.0, -4.0]])
    w = v1.get_variable("w", initializer=begin, use_resource=True)
    optimizer = LARSOptimizer(0.5, 0.9, 0.1, eeta=0.02, epsilon=0.5, skip_list=skipped, use_nesterov=nesterov)
    train = optimizer.minimize(tf.reduce_sum(w * w))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        result = session.run(w)
    value, held = begin.copy(), np.zeros_like(begin)
    for _ in range(3):
        gradient, rate = 2 * value, 0.5
        if not skipped:
            norms = np.linalg.norm(value), np.linalg.norm(gradient)
            rate *= 0.02 * norms[0] / (norms[1] + 0.1 * norms[0] + 0.5)
            gradient = gradient + 0.1 * value
        held = 0.9 * held + rate * gradient
        value = value - (rate * gradient + 0.9 * held if nesterov else held)
    np.testing.assert_allclose(result, value, rtol=1e-5)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("way", ["reference", "resource", "ipu"])
def test_lars_of_rows_is_plain_momentum(graph, way, nesterov):
    begin, which = np.float32([[0, 0], [1, 2], [3, 4]]), [1, 2, 1]

    def step():
        w = v1.get_variable("w", initializer=begin, use_resource=way != "reference")
        optimizer = LARSOptimizer(0.5, 0.9, 0.1, use_nesterov=nesterov)
        return optimizer.minimize(tf.reduce_sum(tf.gather(w, which) ** 2))

    if way == "ipu":
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            train = ipu.ipu_compiler.compile(step, [])
    else:
        train = step()
    value, held = begin.copy(), np.zeros_like(begin)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(train)
            gradient = 2 * value * np.float32([[0], [2], [1]])
            held = 0.9 * held + gradient
            value = value - 0.5 * (gradient + 0.9 * held if nesterov else held)
        np.testing.assert_allclose(session.run(v1.global_variables()[0]), value, rtol=1e-5)


def test_rows_without_a_gradient_keep_their_momentum(graph):
    w = v1.get_variable("w", initializer=np.ones((3, 2), np.float32), use_resource=True)
    row = v1.placeholder(tf.int32, [1])
    train = LARSOptimizer(0.5, 0.9).minimize(tf.reduce_sum(tf.gather(w, row)))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for which in (0, 1, 0):
            session.run(train, {row: [which]})
        held = 0.5 * (1 + 1.9)  # the second step of the first row goes on from its first
        np.testing.assert_allclose(session.run(w), np.float32([[1 - held] * 2, [0.5] * 2, [1] * 2]), rtol=1e-6)


def test_lars_refuses_what_is_negative():
    with pytest.raises(ValueError, match="momentum should be positive"):
        LARSOptimizer(0.1, momentum=-1.0)
    with pytest.raises(ValueError, match="weight_decay should be positive"):
        LARSOptimizer(0.1, weight_decay=-1.0)
