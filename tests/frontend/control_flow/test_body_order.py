"""Variables in conds and loops of a session's graph are accessed in the order of stock `xla.compile`, in both modes."""

import random

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ops import control_flow_util

v1 = tf.compat.v1


class Drawn:
    """A random function of two variables whose accesses stand in conds or loops, up to two deep."""

    def __init__(self, kind, seed):
        self.kind, self.seed = kind, seed

    def __call__(self, x):
        self.chance = random.Random(self.seed)
        names = self.chance.sample(["b", "Read", "x1", "AssignM"], 2)
        self.weights = [v1.get_variable(name, initializer=1.0 + i, use_resource=True) for i, name in enumerate(names)]
        results, updates = [], []
        for step in range(self.chance.randint(2, 5)):
            with tf.name_scope(self.chance.choice(["", "l", "M", "zz"])):
                if self.chance.random() < 0.4:
                    results.append(self.nested(1, x))
                else:
                    self.access(step, x, results, updates)
        return [*(results or self.weights), *updates]

    def access(self, step, x, results, updates):
        """Reads or writes a variable; most writes are returned, the others nothing needs."""
        weight = self.chance.choice(self.weights)
        kind = self.chance.choice(["read", "use", "train", "add", "assign", "scale"])
        if kind in ("read", "use"):
            results.append(weight.read_value() if kind == "read" else tf.reduce_sum(x * weight))
            return
        if kind == "train":
            loss = tf.reduce_sum(x * weight)
            update = v1.train.GradientDescentOptimizer(0.001).minimize(loss, var_list=[weight])
        else:
            value = {"add": 0.5, "assign": 3.25 + step, "scale": weight * 0.5}[kind]
            update = (weight.assign_add if kind == "add" else weight.assign)(value).op
        if self.chance.random() < 0.7:
            updates.append(update)

    def nested(self, depth, x):
        steps = self.chance.randint(1, 4)
        if self.kind == "cond":
            is_taken = tf.reduce_sum(x) > self.chance.choice([0.0, 1e6])
            return tf.cond(is_taken, lambda: self.body(depth, x, steps), lambda: self.body(depth, x, steps))
        return tf.while_loop(
            lambda i, y: i < 2,
            lambda i, y: (i + 1, y * 0.5 + self.body(depth, x, steps)),
            (0, 0.0),
            maximum_iterations=3,
        )[1]

    def body(self, depth, x, steps):
        results, updates = [tf.reduce_sum(x)], []
        for step in range(steps):
            with tf.name_scope(self.chance.choice(["k", "l", "M", "zz"])):
                weight = self.chance.choice(self.weights)
                kind = self.chance.choice(["read", "use", "add", "assign", "scale", *(["nested"] if depth < 2 else [])])
                if kind == "nested":
                    results.append(self.nested(depth + 1, x))
                elif kind in ("read", "use"):
                    results.append(weight.read_value() + 0.0 if kind == "read" else tf.reduce_sum(x * weight))
                else:
                    value = {"add": 0.5, "assign": 3.25 + step, "scale": weight * 0.5}[kind]
                    updates.append((weight.assign_add if kind == "add" else weight.assign)(value).op)
        with tf.control_dependencies(updates if self.chance.random() < 0.5 else []):
            return tf.add_n(results)


def ran(compile, program):
    """What two runs give, and the variables after them."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [3])
        results = compile(program, [x])
        session.run(v1.global_variables_initializer())
        runs = [session.run(results, {x: np.full(3, value)}) for value in (1.0, 0.5)]
        return [value for run in (*runs, session.run(v1.global_variables())) for value in run if value is not None]


def on_ipu(program, inputs):
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(program, inputs)


@pytest.fixture(params=[1, 2])
def version(request, monkeypatch):
    """Control flow of TensorFlow 1 and 2."""
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", request.param == 2)


def check(program):
    wanted, found = ran(tf.xla.experimental.compile, program), ran(on_ipu, program)
    assert len(found) == len(wanted) > 0
    for one, other in zip(wanted, found):
        np.testing.assert_allclose(other, one, rtol=1e-5)


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("kind", ["cond", "loop"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_accesses_in_bodies_are_ordered_as_stock_orders_them(ipus, way, kind, seed):
    ipus(1)
    check(Drawn(kind, seed))


@pytest.mark.slow
@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("kind", ["cond", "loop"])
@pytest.mark.parametrize("seed", range(3, 20))
def test_more_accesses_in_bodies(ipus, way, kind, seed):
    ipus(1)
    check(Drawn(kind, seed))


def written_between(x):
    """What nothing needs of it: every write."""
    total = v1.get_variable("total", initializer=1.0, use_resource=True)
    before = total.read_value()
    total.assign(before + x[0])
    after = total.read_value()
    total.assign_add(10.0)
    sums = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + total.read_value()), (0, 0.0))[1]
    total.assign_add(100.0)
    return before, after, sums


def branches_between(x):
    state = v1.get_variable("state", initializer=1.0, use_resource=True)
    before = state.read_value()
    tf.cond(before > 0.0, lambda: state.assign_add(2.0), lambda: state.assign_sub(1.0))
    between = state.read_value()
    tf.switch_case(tf.constant(1), [lambda: state.assign_add(7.0), lambda: state.assign(state * 10.0)])
    state.assign_sub(1.0)
    return tf.stack([before, between, state.read_value()])


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("program", [written_between, branches_between])
def test_writes_that_nothing_needs_are_in_stocks_order(ipus, way, program):
    ipus(1)
    check(program)


def test_elements_follow_the_order_of_the_variables(ipus, way):
    """The script sends `first` before `last`; stock puts the write, which waits for `last`, before the read."""
    ipus(1)
    first, last = (ipu.ipu_outfeed_queue.IPUOutfeedQueue() for _ in range(2))

    def program(sent):
        weight = v1.get_variable("w", initializer=1.0, use_resource=True)
        read = weight.read_value()
        if sent:
            first.enqueue(read)
        with tf.control_dependencies([last.enqueue(2.0)] if sent else []):
            weight.assign(3.0)
        return read

    with tf.Graph().as_default(), v1.Session() as session:
        (wanted,) = tf.xla.experimental.compile(lambda: program(False))
        session.run(v1.global_variables_initializer())
        wanted = session.run(wanted)
    with tf.Graph().as_default(), v1.Session() as session:
        (result,) = on_ipu(lambda: program(True), [])
        rows = first.dequeue(), last.dequeue()
        session.run(v1.global_variables_initializer())
        assert session.run(result) == wanted == 3.0
        assert [row.tolist() for row in session.run(rows)] == [[3.0], [2.0]]
