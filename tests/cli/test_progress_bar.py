"""The progress bar of a compilation, in processes of their own: it is drawn on the process's stderr."""

import re

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

PROGRAM = """
import tf_ipu_shim
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

PRODUCTS = {products}
with tf.Graph().as_default():
    fed = tf.compat.v1.placeholder(tf.float32, [None, 2])

    def function(x):
        for _ in range(PRODUCTS):
            x = tf.matmul(x, tf.ones([2, 2]))
        return {returned}

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        result = ipu.ipu_compiler.compile(function, [fed])
    with tf.compat.v1.Session() as session:
        for rows in {rows}:
            session.run(result, {{fed: np.ones([rows, 2])}})
"""
ELAPSED = r"\[Elapsed: \d\d:\d\d:\d\d\.\d\]"
FINISHED = rf"\x1b\[2K\[#{{50}}\] 100% Compilation Finished {ELAPSED}\r?\n"


@pytest.fixture
def drawn(python):
    """Runs the program and gives what it wrote to stderr."""

    def run(flag, terminal=False, products=1, returned="x", rows=(2, 2)):
        script = python.script(PROGRAM.format(products=products, returned=returned, rows=list(rows)))
        environment = {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_POPLAR_FLAGS": flag,
            "TF_IPU_SHIM_LOCK_DIR": str(python.directory / "locks"),
        }
        if not terminal:
            process = python(script, environment=environment)
            assert process.returncode == 0, process.stderr
            return process.stderr
        opener = f"""
import os, pty, runpy
main, other = pty.openpty()
os.dup2(other, 2)
runpy.run_path({str(script)!r})
os.set_blocking(main, False)
try:
    print(os.read(main, 1 << 16).decode(), end="")  # all that is drawn fits into a terminal's buffer
except BlockingIOError:
    pass
"""
        return python.succeeds(python.script(opener, "terminal.py"), environment=environment)

    return run


def test_the_bar_ends_at_all_of_it(drawn):
    text = drawn("--show_progress_bar=true")
    first, *steps, last = re.findall(r"(?m)^(?:Compiling|\x1b).*\n", text)  # TensorFlow's own log lines left out
    assert re.fullmatch(r"Compiling module function\S*:\n", first)
    assert all(re.match(rf"\x1b\[2K\[[# ]{{50}}\] \d+% Step: Graph Compilation {ELAPSED}", step) for step in steps)
    assert re.fullmatch(FINISHED, last)


def test_each_shape_has_its_bar(drawn):
    text = drawn("--show_progress_bar=true", rows=(2, 3, 2, 3))
    assert text.count("Compiling module") == len(re.findall(FINISHED, text)) == 2


def test_what_needs_no_engine_has_none(drawn):
    assert "Compiling" not in drawn("--show_progress_bar=true", returned="tf.constant(1.0)")


def test_false_draws_none(drawn):
    assert "Compiling" not in drawn("--show_progress_bar=false", terminal=True, products=5)


def test_auto_draws_on_a_terminal_only(drawn):
    assert "Compiling" not in drawn("", products=5)
    assert re.search(FINISHED, drawn("", terminal=True, products=5))


def test_auto_draws_where_it_takes_long_only(drawn):
    assert "Compiling" not in drawn("", terminal=True, products=4)


def test_an_error_ends_the_bar(python):
    script = python.script(
        """
import tf_ipu_shim
import tensorflow as tf
from tensorflow.python import ipu

v1 = tf.compat.v1
with tf.Graph().as_default():
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        weights = v1.get_variable("weights", [2, 2], use_resource=True)
        (product,) = ipu.ipu_compiler.compile(lambda: tf.matmul(weights, weights), [])
    with v1.Session() as session:
        for _ in range(2):
            try:
                session.run(product)
            except tf.errors.FailedPreconditionError:
                session.run(v1.global_variables_initializer())
"""
    )
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_POPLAR_FLAGS": "--show_progress_bar=true"}
    process = python(script, environment=environment)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("Compiling module") == 1
    assert process.stderr.endswith("\n") and "Compilation Finished" not in process.stderr
