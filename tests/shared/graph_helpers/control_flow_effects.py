"""Functions of TensorFlow 1 with side effects, and how often stock `tf.xla.experimental.compile` does them.

Each takes a boolean, a positive number and `hit`, which adds one to a variable of a name.
"""

import tensorflow as tf
from tensorflow.python.framework import function

v1 = tf.compat.v1

COUNTS: dict = {}
"""For each function: which variables have been added to, and how often, where the boolean holds and where not."""


def counts(true, false):
    def add(net):
        COUNTS[net] = (true, false)
        return net

    return add


def branch(x, effect):
    def taken():
        effect()
        return x * 2.0

    return taken


def loop(times, step, x):
    def body(i, y):
        return i + 1, step(y)

    return tf.while_loop(lambda i, _: i < times, body, (0, x), maximum_iterations=times)[1]


def waiting(x, effect):
    with tf.control_dependencies([effect()]):
        return tf.identity(x)


def called(effect):
    @tf.function
    def function_of_tensorflow_2(y):
        effect()
        return y

    return function_of_tensorflow_2


def index(flag):
    return tf.cast(flag, tf.int32)


@counts({"a": 1}, {"a": 1})
def plain(flag, x, hit):
    hit("a")
    return x


@counts({}, {})
def in_a_branch(flag, x, hit):
    return tf.cond(flag, branch(x, lambda: hit("a")), lambda: x)


@counts({"a": 1}, {"b": 1})
def unused_cond(flag, x, hit):
    tf.cond(flag, lambda: hit("a"), lambda: hit("b"))
    return x


@counts({"a": 1, "b": 1}, {"a": 1, "b": 1})
def unused_cond_of_what_was_written(flag, x, hit):
    """As target networks are updated every few steps."""
    with tf.control_dependencies([hit("a")]):
        with v1.variable_scope("unused_cond_of_what_was_written", reuse=True, use_resource=True):
            steps = v1.get_variable("a").read_value()
    tf.cond(tf.equal(tf.math.floormod(steps, 2.0), 1.0), lambda: hit("b"), lambda: hit("c"))
    return x


@counts({"a": 1}, {})
def unused_group(flag, x, hit):
    tf.cond(flag, lambda: tf.group(hit("a")), tf.no_op)
    return x


@counts({"a": 1}, {})
def group_of_a_group(flag, x, hit):
    tf.cond(flag, lambda: tf.group(tf.cond(flag, lambda: tf.group(hit("a")), tf.no_op)), tf.no_op)
    return x


@counts({}, {})
def cond_in_a_branch(flag, x, hit):
    return tf.cond(flag, branch(x, lambda: tf.cond(flag, lambda: hit("a"), lambda: hit("b"))), lambda: x)


@counts({}, {})
def loop_in_a_branch(flag, x, hit):
    return tf.cond(flag, branch(x, lambda: loop(2, lambda y: waiting(y, lambda: hit("a")), x)), lambda: x)


@counts({"a": 1}, {})
def one_of_two_results(flag, x, hit):
    return tf.cond(flag, lambda: (x, hit("a")), lambda: (x, x))[0]


@counts({"b": 1}, {"c": 1})
def unused_case(flag, x, hit):
    tf.case([(x < 0.0, lambda: hit("a")), (flag, lambda: hit("b"))], default=lambda: hit("c"))
    return x


@counts({"a": 3}, {"a": 3})
def unused_loop(flag, x, hit):
    loop(3, lambda y: waiting(y, lambda: hit("a")), x)
    return x


@counts({}, {})
def loop_that_waits_for_nothing(flag, x, hit):
    loop(3, lambda y: (hit("a"), y + 1.0)[1], x)
    return loop(3, lambda y: (hit("b"), y + 1.0)[1], x)


@counts({}, {})
def loop_in_a_loop(flag, x, hit):
    return loop(2, lambda y: (loop(2, lambda z: waiting(z, lambda: hit("a")), y), y + 1.0)[1], x)


@counts({}, {})
def in_a_condition(flag, x, hit):
    def goes_on(i, _):
        hit("a")
        return i < 3

    return tf.while_loop(goes_on, lambda i, y: (i + 1, y + 1.0), (0, x), maximum_iterations=5)[1]


@counts({"b": 1}, {"a": 1})
def switch_case(flag, x, hit):
    return tf.switch_case(index(flag), [branch(x, lambda: hit("a")), branch(x, lambda: hit("b"))])


@counts({"b": 1}, {"a": 1})
def unused_switch_case(flag, x, hit):
    tf.switch_case(index(flag), [branch(x, lambda: hit("a")), branch(x, lambda: hit("b"))])
    return x


@counts({}, {})
def unused_switch_case_in_a_branch(flag, x, hit):
    choose = [lambda: hit("a"), lambda: hit("b")]
    return tf.cond(flag, branch(x, lambda: tf.switch_case(index(flag), choose)), lambda: x)


@counts({"a": 1}, {})
def switch_case_in_a_branch(flag, x, hit):
    return tf.cond(flag, lambda: tf.switch_case(index(flag), [lambda: x, branch(x, lambda: hit("a"))]), lambda: x)


@counts({"a": 2}, {})
def switch_case_in_a_loop(flag, x, hit):
    return loop(2, lambda y: tf.switch_case(index(flag), [lambda: y, branch(y, lambda: hit("a"))]), x)


@counts({"a": 1}, {})
def cond_in_switch_case(flag, x, hit):
    inner = branch(x, lambda: tf.cond(flag, branch(x, lambda: hit("a")), lambda: hit("b")))
    return tf.switch_case(index(flag), [lambda: x, inner])


@counts({"a": 3}, {})
def loop_in_switch_case(flag, x, hit):
    return tf.switch_case(index(flag), [lambda: x, lambda: loop(3, lambda y: (hit("a"), y + 1.0)[1], x)])


@counts({"a": 1}, {"a": 1})
def unused_call(flag, x, hit):
    called(lambda: hit("a"))(x)
    return x


@counts({"a": 1}, {"a": 1})
def call_in_a_call(flag, x, hit):
    inner = called(lambda: hit("a"))
    called(lambda: inner(x))(x)
    return x


@counts({"a": 1}, {"b": 1})
def cond_in_a_call(flag, x, hit):
    return called(lambda: tf.cond(flag, branch(x, lambda: hit("a")), branch(x, lambda: hit("b"))))(x)


@counts({"a": 3}, {"a": 3})
def loop_in_a_call(flag, x, hit):
    return called(lambda: loop(3, lambda y: (hit("a"), y + 1.0)[1], x))(x)


@counts({}, {})
def unused_call_in_a_branch(flag, x, hit):
    return tf.cond(flag, branch(x, lambda: called(lambda: hit("a"))(x)), lambda: x)


@counts({"a": 2}, {"a": 2})
def call_in_a_loop(flag, x, hit):
    return loop(2, called(lambda: hit("a")), x)


@counts({"a": 1}, {"a": 1})
def defun(flag, x, hit):
    @function.Defun(tf.float32)
    def of_tensorflow_1(y):
        hit("a")
        tf.cond(y < 0.0, branch(y, lambda: hit("b")), lambda: y)
        return tf.cond(y > 0.0, branch(y, lambda: hit("c")), lambda: y)

    of_tensorflow_1(x)
    return x


NETS = list(COUNTS)
