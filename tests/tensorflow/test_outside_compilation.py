"""`outside_compilation_scope` as scripts use it: prints, Python functions and assertions in compiled programs."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure, run_function
from tf_ipu_shim.ipu import ipu_compiler, loops
from tf_ipu_shim.ipu.scopes import ipu_scope, outside_compilation_scope

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def in_session(body, value, repeats=0):
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, [])
        with ipu_scope(IPU):
            compiled = ipu_compiler.compile(lambda x: loops.repeat(repeats, body, [x]) if repeats else body(x), [x])
        return session.run(compiled, {x: value})[0]


def in_function(mode):
    return lambda body, value: run_function(lambda parts, x: body(x), [np.float32(value)], mode=mode).steps[0][0]


def in_loop(body, value):
    return in_session(body, value, repeats=3)


everywhere = pytest.mark.parametrize(
    "run, repeats",
    [(in_session, 1), (in_loop, 3), (in_function("compile"), 1), (in_function("jit"), 1)],
    ids=["session", "loop", "function", "jit"],
)


@everywhere
def test_python_functions(run, repeats):
    seen = []

    def triple(x):
        seen.append(float(x))
        return 3.0 * x

    def body(x):
        with outside_compilation_scope():
            y = tf.py_function(triple, [x], tf.float32)
            y.set_shape([])
        return y + 1.0

    expected, inputs = 1.5, []
    for _ in range(repeats):
        inputs.append(expected)
        expected = 3 * expected + 1
    assert run(body, 1.5) == expected
    assert seen == inputs


@everywhere
def test_prints(run, repeats, capfd):
    def body(x):
        with outside_compilation_scope():
            printed = tf.print("x is", x)
        with tf.control_dependencies([printed]):
            return x + 1.0

    assert run(body, 1.5) == 1.5 + repeats
    numbers = [float(number) for number in re.findall(r"x is ([\d.]+)", capfd.readouterr().err)]
    assert numbers == [1.5 + step for step in range(repeats)]


def test_what_is_done_on_the_host_needs_no_one_to_need_it(capfd):
    seen = []

    def body(x):
        with outside_compilation_scope():
            tf.print("x is", x, end=";")
            v1.py_func(seen.append, [x], [])
        return x + 1.0

    assert in_session(body, 1.5) == 2.5
    assert "x is 1.5;" in capfd.readouterr().err and seen == [1.5]


@everywhere
def test_assertions(run, repeats):
    def body(x):
        with outside_compilation_scope():
            checked = tf.debugging.assert_less(x, 4.0, message="x has grown")
        with tf.control_dependencies([checked] if checked is not None else []):
            return x + 1.0

    assert run(body, 1.5) == 1.5 + repeats
    with pytest.raises(tf.errors.InvalidArgumentError, match="x has grown"):
        run(body, 4.5)


def test_an_assertion_outside_the_scope_stops_the_run_on_the_ipu():
    def body(x):
        with tf.control_dependencies([v1.assert_less(x, 4.0)]):
            return x + 1.0

    assert in_session(body, 3.5) == 4.5
    with pytest.raises(tf.errors.InternalError, match="assertion failed"):
        in_session(body, 4.5)


def test_the_scope_is_refused_elsewhere():
    with pytest.raises(ValueError, match="only allowed in XLA context"), outside_compilation_scope():
        pass
    nested = lambda x: _nested()  # noqa: E731
    with pytest.raises(ValueError, match="Illegal nesting of outside_compilation_scope"):
        in_session(nested, 1.0)


def _nested():
    with outside_compilation_scope(), outside_compilation_scope():
        return tf.constant(1.0)
