"""Options that Poplar's planner would refuse fail the program, when it runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.plugin.poplar.ops import gen_popnn_ops
from tf_ipu_shim.ipu import ipu_compiler, rnn_ops
from tf_ipu_shim.ipu.scopes import ipu_scope

v1 = tf.compat.v1
INPUTS = np.ones([3, 2, 4], np.float32)
WRONG = {"availableMemoryProportion": -123.0}


def gen_lstm(x, options, options_bwd):
    return gen_popnn_ops.popnn_lstm_layer(
        x, tf.zeros([2, 5]), tf.zeros([2, 5]), tf.ones([9, 20]), tf.ones([4, 5]), "tanh", "sigmoid", 5, False,
        options=json.dumps(options), options_bwd=json.dumps(options_bwd),
    )[0]  # fmt: skip


def gen_gru(x, options, options_bwd):
    return gen_popnn_ops.popnn_gru_layer(
        x, tf.zeros([2, 5]), tf.ones([9, 15]), tf.ones([3, 5]), "tanh", "sigmoid", 5, False, reset_after=False,
        options=json.dumps(options), options_bwd=json.dumps(options_bwd),
    )[0]  # fmt: skip


def layer(kind):
    def model(x, options, options_bwd):
        return kind(5, options=options, options_bwd=options_bwd, return_state=False)(x)

    return model


@pytest.mark.parametrize("model", [gen_lstm, gen_gru, layer(rnn_ops.PopnnLSTM), layer(rnn_ops.PopnnGRU)])
@pytest.mark.parametrize("forward", [True, False])
def test_in_a_program(ipus, model, forward):
    ipus(1)

    def checked(options):
        both = (options, {}) if forward else ({}, options)
        with tf.Graph().as_default(), v1.Session() as session:
            with tf.device("cpu"):
                x = v1.placeholder(tf.float32, INPUTS.shape)
            with ipu_scope("/device:IPU:0"):
                compiled = ipu_compiler.compile(lambda x: model(x, *both), [x])
            session.run(v1.global_variables_initializer())
            if options is WRONG:
                with pytest.raises(tf.errors.InternalError, match="Value must be greater than or equal to 0"):
                    session.run(compiled, {x: INPUTS})
            else:
                assert session.run(compiled, {x: INPUTS})[0].shape == (3, 2, 5)

    checked(WRONG)
    checked({"availableMemoryProportion": 0.7})
    checked(None)
    checked({"availableMemoryProportion": "0.7"})


def test_in_a_session_that_runs_op_by_op(ipus):
    ipus(1)
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, INPUTS.shape)
        with ipu_scope("/device:IPU:0"):
            wrong, right = (gen_lstm(x, options, {}) for options in (WRONG, {}))
        with pytest.raises(tf.errors.InternalError, match="Value must be greater than or equal to 0"):
            session.run(wrong, {x: INPUTS})
        assert session.run(right, {x: INPUTS}).shape == (3, 2, 5)


def test_at_once_when_run_eagerly():
    with pytest.raises(tf.errors.InternalError, match="Value must be greater than or equal to 0"):
        gen_lstm(tf.constant(INPUTS), WRONG, {})
    with pytest.raises(tf.errors.InternalError, match="is 'much', which is no number"):
        gen_gru(tf.constant(INPUTS), {}, {"availableMemoryProportion": "much"})
