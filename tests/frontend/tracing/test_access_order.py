"""Reads and writes that a session's graph does not order come in the order of stock `xla.compile`, in both modes."""

import random

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def variable(name, value=1.0):
    return v1.get_variable(name, initializer=value, use_resource=True)


def trained(x, result):
    """Momentum on a loss of five iterations, as in Graphcore's test, and what the function returns of the variable."""
    weight = variable("a")
    loss = tf.reduce_sum(weight**5 * x)
    train = v1.train.MomentumOptimizer(0.001, 0.9).minimize(loss, var_list=[weight])
    return [result(weight), loss, train]


def read_then_added(x):
    weight = variable("a")
    read = weight.read_value()
    return [read, weight.assign_add(1.0).op]


def in_both_scopes(x):
    """Reads whose names sort before and after that of the write."""
    weight = variable("a")
    with tf.name_scope("A"):
        first = weight.read_value()
    with tf.name_scope("z"):
        last = weight * 1.0
    return [first, last, weight.assign(weight * 3.0).op]


def trained_through_a_called_loop(x):
    """The gradient of the loop adds ops to the called function after the loop, which takes them."""
    weight = variable("a")

    @tf.function(autograph=False)
    def called(y):
        return v1.while_loop(lambda i, _: i < 3, lambda i, z: (i + 1, tf.tanh(z) * y), (0, y), maximum_iterations=3)[1]

    loss = tf.reduce_sum(called(x * weight))
    return [loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[weight])]


def drawn(seed):
    """A random function of two variables."""

    def function(x):
        chance = random.Random(seed)
        weights = [variable(name, 1.0 + i) for i, name in enumerate(chance.sample(["b", "Read", "x1", "AssignM"], 2))]
        results, updates = [], []
        for step in range(chance.randint(2, 6)):
            weight = chance.choice(weights)
            with tf.name_scope(chance.choice(["", "l", "M", "zz"])):
                kind = chance.choice(["read", "variable", "use", "add", "assign", "train", "scale"])
                if kind in ("read", "variable"):
                    results.append(weight.read_value() if kind == "read" else weight)
                elif kind == "use":
                    x = x * weight
                    results.append(tf.reduce_sum(x))
                elif kind == "train":
                    loss = tf.reduce_sum(x * weight)
                    updates.append(v1.train.GradientDescentOptimizer(0.001).minimize(loss, var_list=[weight]))
                else:
                    value = {"add": 0.5, "assign": 3.25 + step, "scale": weight * 0.5}[kind]
                    updates.append((weight.assign_add if kind == "add" else weight.assign)(value).op)
        return [*(results or weights), *updates]

    return function


PROGRAMS = {
    "variable": lambda x: trained(x, lambda weight: weight),
    "value read": lambda x: trained(x, lambda weight: weight.read_value()),
    "value computed": lambda x: trained(x, lambda weight: weight * 2.0),
    "read then added": read_then_added,
    "in both scopes": in_both_scopes,
    "called loop": trained_through_a_called_loop,
    **{f"drawn {seed}": drawn(seed) for seed in range(12)},
}


def ran(compile, program):
    """What two runs give, and the variables after them."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [3])
        results = compile(program, [x])
        session.run(v1.global_variables_initializer())
        runs = [session.run(results, {x: np.full(3, value)}) for value in (1.0, 0.5)]
        return [np.array(run) for run in runs], session.run(v1.global_variables())


def on_ipu(program, inputs):
    with ipu.scopes.ipu_scope(IPU):
        return ipu.ipu_compiler.compile(program, inputs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_accesses_are_ordered_as_stock_orders_them(ipus, execution_mode, name):
    ipus(1)
    wanted, found = (ran(compile, PROGRAMS[name]) for compile in (tf.xla.experimental.compile, on_ipu))
    for one, other in zip([*wanted[0], *wanted[1]], [*found[0], *found[1]]):
        np.testing.assert_allclose(other, one, rtol=1e-6)


def test_a_returned_variable_is_that_before_the_update(ipus, execution_mode):
    """Known from Graphcore's tests: 1 for a weight of 1 that the same run trains."""
    ipus(1)
    (first, _), (after, *_) = ran(on_ipu, PROGRAMS["variable"])
    assert first[0] == 1.0
    assert after < 0.99
