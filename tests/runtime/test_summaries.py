"""TensorFlow 1's summaries in and around programs: those of a session's graph are TensorFlow's, programs have none."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

X = np.float32([1, 2, 4])


def values(serialised):
    return {value.tag: value.simple_value for value in tf.Summary.FromString(serialised).value}


def compiled(function, *inputs):
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(function, list(inputs))


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_program_s_summaries_are_left_out_and_others_stay(in_loop):
    def model(x):
        tf.summary.scalar("inner", tf.reduce_sum(x))
        tf.summary.histogram("histogram", x)
        tf.summary.scalar("elsewhere", tf.reduce_sum(x), collections=["elsewhere"])
        return 2 * x

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        tf.summary.scalar("before", x[0])
        program = (lambda x: ipu.loops.repeat(3, model, [x])) if in_loop else model
        (result,) = compiled(program, x)
        tf.summary.scalar("after", tf.reduce_sum(result))
        assert tf.summary.merge_all("elsewhere") is None
        merged = tf.summary.merge_all()
        with tf.Session() as session:
            found, summary = session.run([result, merged], {x: X})
    expected = X * (8 if in_loop else 2)
    np.testing.assert_allclose(found, expected)
    assert values(summary) == {"before": X[0], "after": expected.sum()}


def test_one_in_a_scope_on_the_host_is_made_there():
    seen = []

    def keep(summary):
        seen.append(values(summary))
        return np.float32(0)

    def model(x):
        with ipu.scopes.outside_compilation_scope():
            summary = tf.summary.scalar("on_host", tf.reduce_sum(x))
            nothing = tf.ensure_shape(tf.numpy_function(keep, [summary], tf.float32), [])
        return x + nothing

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        (result,) = compiled(model, x)
        assert tf.summary.merge_all() is None
        with tf.Session() as session:
            np.testing.assert_allclose(session.run(result, {x: X}), X)
    assert seen == [{"on_host": X.sum()}]


def test_the_log_says_that_they_are_left_out(caplog, monkeypatch):
    from tensorflow.python.platform import tf_logging

    monkeypatch.setattr(tf_logging, "_log_counter_per_token", {})
    with tf.Graph().as_default(), caplog.at_level("WARNING", "tensorflow"):
        x = tf.placeholder(tf.float32, [3])
        tf.summary.scalar("outside", x[0])
        assert not caplog.records
        for _ in range(2):
            compiled(lambda x: (tf.summary.scalar("inside", x[0]), x)[1], x)
    messages = [record.message for record in caplog.records if "tf.compat.v1.summary" in record.message]
    assert len(messages) == 1 and "send it by an outfeed" in messages[0]
