"""`outside_compilation_scope` as scripts use it: prints, Python functions and assertions in compiled programs."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure, run_function
from tf_ipu_shim.ipu import internal_ops, ipu_compiler, loops
from tf_ipu_shim.ipu.scopes import ipu_scope, outside_compilation_scope

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def in_session(body, value, around=lambda body, x: body(x)):
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, [])
        with ipu_scope(IPU):
            compiled = ipu_compiler.compile(lambda x: around(body, x), [x])
        return session.run(compiled, {x: value})[0]


def in_function(mode):
    return lambda body, value: run_function(lambda parts, x: body(x), [np.float32(value)], mode=mode).steps[0][0]


everywhere = pytest.mark.parametrize(
    "run", [in_session, in_function("compile"), in_function("jit")], ids=["session", "function", "jit"]
)


@everywhere
def test_python_functions(run):
    seen = []

    def triple(x):
        seen.append(float(x))
        return 3.0 * x

    def body(x):
        with outside_compilation_scope():
            y = tf.py_function(triple, [x], tf.float32)
            y.set_shape([])
        return y + 1.0

    assert run(body, 1.5) == 5.5
    assert seen == [1.5]


@everywhere
def test_prints(run, capfd):
    def body(x):
        with outside_compilation_scope():
            printed = tf.print("x is", x)
        with tf.control_dependencies([printed]):
            return x + 1.0

    assert run(body, 1.5) == 2.5
    assert re.findall(r"x is ([\d.]+)", capfd.readouterr().err) == ["1.5"]


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
def test_assertions(run):
    def body(x):
        with outside_compilation_scope():
            checked = tf.debugging.assert_less(x, 4.0, message="x has grown")
        with tf.control_dependencies([checked] if checked is not None else []):
            return x + 1.0

    assert run(body, 1.5) == 2.5
    with pytest.raises(tf.errors.InvalidArgumentError, match="x has grown"):
        run(body, 4.5)


def test_an_assertion_outside_the_scope_stops_the_run_on_the_ipu():
    def body(x):
        with tf.control_dependencies([v1.assert_less(x, 4.0)]):
            return x + 1.0

    assert in_session(body, 3.5) == 4.5
    with pytest.raises(tf.errors.InternalError, match="assertion failed"):
        in_session(body, 4.5)


@pytest.mark.parametrize(
    "around",
    [
        lambda body, x: loops.repeat(2, body, [x]),
        lambda body, x: tf.cond(x > 1.0, lambda: body(x), lambda: x),
        lambda body, x: loops.repeat(2, tf.function(body), [x]),  # a function that the loop calls
        lambda body, x: loops.repeat(2, lambda y: tf.cond(y > 1.0, lambda: body(y), lambda: y), [x]),
    ],
    ids=["loop", "branch", "call", "nested"],
)
def test_the_scope_is_refused_in_control_flow(around):
    def body(x):
        with outside_compilation_scope():
            return tf.ensure_shape(tf.py_function(lambda y: y + 1.0, [x], tf.float32), [])

    refused = r"`outside_compilation_scope` enclosed in control flow \(loop or cond\) is not supported: .*in body is in"
    with pytest.raises(tf.errors.UnimplementedError, match=refused):
        in_session(body, 1.5, around)


@pytest.mark.parametrize(
    ("around", "said"),
    [
        (lambda body, x: body(x), r"^Run them on the host with ipu\.scopes\.outside_compilation_scope\(\), or leave"),
        (
            lambda body, x: loops.repeat(2, body, [x]),
            r"^They are in a loop or branch, .* through an IPUOutfeedQueue, or leave",
        ),
        (lambda body, x: tf.cond(x > 1.0, lambda: body(x), lambda: x), "^They are in a loop or branch, "),
    ],
    ids=["program", "loop", "branch"],
)
def test_the_scope_is_advised_where_it_may_be(around, said):
    def body(x):
        return tf.ensure_shape(tf.py_function(lambda y: y + 1.0, [x], tf.float32), [])

    with pytest.raises(tf.errors.InvalidArgumentError, match="(?m)" + said):
        in_session(body, 1.5, around)


def test_loops_and_branches_may_be_in_the_scope():
    def body(x):
        with outside_compilation_scope():
            grown = tf.while_loop(lambda y: y < 5.0, lambda y: [3.0 * y], [x])[0]
            return tf.cond(grown > 5.0, lambda: grown + 1.0, lambda: grown)

    assert in_session(body, 1.0) == 10.0


def test_tensors_are_printed_in_loops(capfd):
    def body(x):
        with tf.control_dependencies([internal_ops.print_tensor(x)]):
            return 3.0 * x

    assert in_session(body, 1.5, lambda body, x: loops.repeat(2, body, [x])) == 13.5
    assert re.findall(r"[\d.]+$", capfd.readouterr().err, re.MULTILINE) == ["1.5", "4.5"]


def test_the_scope_is_refused_elsewhere():
    with pytest.raises(ValueError, match="only allowed in XLA context"), outside_compilation_scope():
        pass
    nested = lambda x: _nested()  # noqa: E731
    with pytest.raises(ValueError, match="Illegal nesting of outside_compilation_scope"):
        in_session(nested, 1.0)


def _nested():
    with outside_compilation_scope(), outside_compilation_scope():
        return tf.constant(1.0)
