"""Optimizers with decoupled weight decay and lookups of variables, as `tensorflow.contrib` had them."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

from tensorflow.contrib import framework, opt  # isort: skip
from tensorflow.contrib.opt.python.training.weight_decay_optimizers import MomentumWOptimizer  # isort: skip

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
BEGIN = np.float32([[3.0, -4.0], [0.5, 2.0], [-1.0, 1.5]])
DECAY = 0.1


def adam(value, gradients, rate=0.01):
    """NumPy's Adam with decoupled decay."""
    first, second = np.zeros_like(value), np.zeros_like(value)
    for step, gradient in enumerate(gradients, 1):
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        value = (
            value - DECAY * value - rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) * first / (np.sqrt(second) + 1e-8)
        )
    return value


def trained(train, *variables, steps=3):
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        return session.run(variables)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("decay", [DECAY, lambda: DECAY])
def test_adam(graph, use_resource, decay):
    w = v1.get_variable("w", initializer=BEGIN, use_resource=use_resource)
    step = v1.train.get_or_create_global_step()
    train = opt.AdamWOptimizer(decay, 0.01).minimize(tf.reduce_sum(w * [[2.0, -3.0]]), step)
    (result, steps) = trained(train, w, step)
    np.testing.assert_allclose(result, adam(BEGIN, [np.float32([[2, -3]] * 3)] * 3), rtol=1e-5)
    assert steps == 3


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(graph, nesterov):
    w = v1.get_variable("w", initializer=BEGIN, use_resource=True)
    train = MomentumWOptimizer(DECAY, 0.2, 0.5, use_nesterov=nesterov).minimize(tf.reduce_sum(w))
    value, held = BEGIN.copy(), np.zeros_like(BEGIN)
    for _ in range(3):
        held = 0.5 * held + 1
        value = value - DECAY * value - 0.2 * (1 + 0.5 * held if nesterov else held)
    np.testing.assert_allclose(trained(train, w)[0], value, rtol=1e-5)


@pytest.mark.parametrize("by", ["minimize", "apply_gradients"])
def test_some_variables_decay(graph, by):
    w, b = (v1.get_variable(name, initializer=BEGIN, use_resource=True) for name in "wb")
    optimizer = opt.extend_with_decoupled_weight_decay(v1.train.GradientDescentOptimizer)(DECAY, learning_rate=0.5)
    loss = tf.reduce_sum(w + b)
    if by == "minimize":
        train = optimizer.minimize(loss, decay_var_list=[w])
    else:
        train = optimizer.apply_gradients(optimizer.compute_gradients(loss), decay_var_list=[w])
    of_w, of_b = trained(train, w, b, steps=1)
    np.testing.assert_allclose(of_w, BEGIN - DECAY * BEGIN - 0.5, rtol=1e-6)
    np.testing.assert_allclose(of_b, BEGIN - 0.5, rtol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", ["adam", "momentum"])
def test_rows_without_a_gradient_do_not_decay(graph, name, use_resource):
    w = v1.get_variable("w", initializer=BEGIN, use_resource=use_resource)
    optimizer = {"adam": opt.AdamWOptimizer(DECAY, 0.01), "momentum": opt.MomentumWOptimizer(DECAY, 0.2, 0.5)}[name]
    (result,) = trained(optimizer.minimize(tf.reduce_sum(tf.gather(w, [1, 1]))), w, steps=1)
    expected = BEGIN.copy()
    row, gradient = BEGIN[1:2], np.full([1, 2], 2, np.float32)  # of two looks at the row
    expected[1] = adam(row, [gradient]) if name == "adam" else row - DECAY * row - 0.2 * gradient
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("way", "rows"),
    [("reference", False), ("reference", True), ("resource", False), ("resource", True), ("ipu", False)],
)
def test_the_gradient_is_that_of_the_weight_before_it_decays(graph, way, rows):
    def step():
        w = v1.get_variable("w", initializer=BEGIN, use_resource=way != "reference")
        taken = tf.gather(w, [0, 1, 2]) if rows else w
        return opt.MomentumWOptimizer(DECAY, 0.2, 0.5).minimize(tf.reduce_sum(taken**3))

    if way == "ipu":
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            train = ipu.ipu_compiler.compile(step, [])
    else:
        train = step()
    (w,) = (variable for variable in v1.global_variables() if variable.op.name == "w")
    value, held = BEGIN.astype(np.float64) / 10, np.zeros(BEGIN.shape)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        w.load(BEGIN / 10, session)
        for _ in range(3):
            session.run(train)
            held = 0.5 * held + 3 * value**2
            value = value - DECAY * value - 0.2 * held
        np.testing.assert_allclose(session.run(w), value, rtol=1e-5)


def test_on_an_ipu_with_accumulated_gradients(graph):
    """Four mini-batches to an update: the weights decay once in each."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()

    def step(_):
        w = v1.get_variable("w", initializer=BEGIN, use_resource=True)
        inner = opt.AdamWOptimizer(DECAY, 0.01)
        optimizer = ipu.optimizers.GradientAccumulationOptimizerV2(inner, 4)
        return optimizer.minimize(tf.reduce_sum(w * [[2.0, -3.0]]))

    def program():
        return ipu.loops.repeat(8, lambda: step(None), [])

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        train = ipu.ipu_compiler.compile(program, [])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(train)
        (w,) = (variable for variable in v1.global_variables() if variable.op.name == "w")
        result = session.run(w)
    np.testing.assert_allclose(result, adam(BEGIN, [4 * np.float32([[2, -3]] * 3)] * 2), rtol=1e-5)


def test_variables_of_a_graph(graph):
    def new(name, **options):
        return v1.get_variable(name, [2], use_resource=True, **options)

    with v1.variable_scope("encoder") as scope:
        kernel, bias = new("kernel"), new("bias", trainable=False)
    with v1.variable_scope("decoder"):
        other = new("kernel", collections=[v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.MODEL_VARIABLES])
        local = new("local", trainable=False, collections=[v1.GraphKeys.LOCAL_VARIABLES])
    long = new("long_kernel")
    assert framework.get_variables() == [kernel, bias, other, long]
    assert framework.get_variables("encoder") == framework.get_variables(scope) == [kernel, bias]
    assert framework.get_variables(suffix="kernel") == [kernel, other, long]
    assert framework.get_variables_by_suffix("bias", "encoder") == [bias]
    assert framework.get_variables_by_name("kernel") == [kernel, other]
    assert framework.get_variables_by_name("kernel", "decoder") == [other]
    assert framework.get_trainable_variables() == [kernel, other, long]
    assert framework.get_model_variables() == [other]
    assert framework.get_local_variables() == [local]
