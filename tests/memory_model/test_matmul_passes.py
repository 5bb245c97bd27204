"""Which pass the products of a pipeline belong to: its stages, and their gradients, are computations of their own."""

import unittest

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import config, ipu_compiler, ipu_outfeed_queue, pipelining_ops, scopes, test_utils

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
CASE = unittest.TestCase()


@pytest.fixture(params=[False])
def two_ipus(own_environment, request):
    """Two IPUs; the parameter is `allow_recompute`."""
    made = config.IPUConfig()
    made.auto_select_ipus = 2
    made.allow_recompute = request.param
    test_utils.enable_ipu_events(made)
    made.configure_ipu_system()


def counts_of(stages, shape):
    """How many products there are of inference, forward, backward and updates, of a pipeline that trains."""
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

    def optimizer(loss):
        return pipelining_ops.OptimizerFunctionOutput(v1.train.GradientDescentOptimizer(0.01), loss)

    def pipeline(x):
        return pipelining_ops.pipeline(stages, 4, inputs=[x], outfeed_queue=outfeed, optimizer_function=optimizer)

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, shape)
        with scopes.ipu_scope("/device:IPU:0"):
            trained = ipu_compiler.compile(pipeline, [x])
        outfeed.dequeue()
        report = test_utils.ReportJSON(CASE, session)
        session.run(v1.global_variables_initializer())
        report.reset()
        session.run(trained, {x: np.ones(shape)})
        report.parse_log()
        return report.get_ml_type_counts()


def variable(name, shape):
    return v1.get_variable(name, shape, initializer=v1.ones_initializer(), use_resource=True)


def test_matmuls_of_another_stage_s_gradient_are_not_updates(two_ipus):
    def first(x):
        return tf.matmul(tf.matmul(x, variable("a", [8, 8])), variable("b", [8, 8]))

    def second(x):
        return tf.reduce_mean(tf.matmul(x, variable("c", [8, 8])) ** 2)

    # Three products and three updates; the gradients of what b and c take, as nothing needs that of x.
    assert counts_of([first, second], [4, 8]) == [0, 3, 2, 3]


def test_kernels_of_another_stages_convolution_are_turned_round(two_ipus):
    def first(x):
        return tf.nn.conv2d(x, variable("a", [3, 3, 2, 4]), 1, "SAME")

    def second(x):
        return tf.reduce_mean(tf.nn.conv2d(x, variable("b", [3, 3, 4, 4]), 1, "SAME") ** 2)

    # Two convolutions; b turned round, and the convolution with it; two updates.
    assert counts_of([first, second], [1, 4, 4, 2]) == [0, 4, 0, 2]


def test_a_strided_convolutions_kernel_is_not(two_ipus):
    def first(x):
        return tf.nn.conv2d(x, variable("a", [3, 3, 2, 4]), 1, "SAME")

    def second(x):
        return tf.reduce_mean(tf.nn.conv2d(x, variable("b", [3, 3, 4, 4]), 2, "SAME") ** 2)

    assert counts_of([first, second], [1, 4, 4, 2]) == [0, 2, 1, 2]


@pytest.mark.parametrize("two_ipus, forward", [(False, 3), (True, 3 + 2)], indirect=["two_ipus"])
def test_matmuls_of_recomputation_are_counted_again(two_ipus, forward):
    """Those of the first stage; the last one never recomputes."""

    def first(x):
        hidden = tf.nn.relu(tf.matmul(x, variable("a", [8, 8])))
        return tf.nn.relu(tf.matmul(hidden, variable("b", [8, 8])))

    def second(x):
        return tf.reduce_mean(tf.matmul(x, variable("c", [8, 8])) ** 2)

    assert counts_of([first, second], [4, 8]) == [0, forward, 2, 3]
