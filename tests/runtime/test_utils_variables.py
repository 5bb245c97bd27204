"""Initial values of variables move to the CPU, the variables do not."""

import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import utils

v1 = tf.compat.v1


def test_initial_values_move():
    with tf.Graph().as_default():
        with tf.device("/device:IPU:0"):
            one = v1.get_variable("one", [3, 2], initializer=v1.glorot_uniform_initializer(), use_resource=True)
            two = v1.get_variable("two", initializer=tf.ones([2]) * 3.0, use_resource=True)
            three = v1.get_variable("three", initializer=lambda: one.read_value() * 2.0, use_resource=True)
            product = tf.matmul(one, three, transpose_b=True)
        utils.move_variable_initialization_to_cpu()
        for variable in (one, two, three):
            assert variable.handle.op.device == "/device:IPU:0"
            assert variable.initializer.device == "/device:IPU:0"
        moved = one.initializer.inputs[1].op
        while moved.inputs:
            assert moved.device == "/device:CPU:0"
            assert "_class" not in moved.node_def.attr
            moved = moved.inputs[0].op
        assert two.initializer.inputs[1].op.device == "/device:CPU:0"
        assert product.op.device == "/device:IPU:0"


def test_job_and_task_are_kept():
    with tf.Graph().as_default() as graph:
        with tf.device("/job:worker/task:1/device:IPU:0"):
            variable = v1.get_variable("v", [2], use_resource=True)
        utils.move_variable_initialization_to_cpu(graph)
        assert variable.initializer.inputs[1].op.device == "/job:worker/task:1/device:CPU:0"


def test_values_are_what_they_were():
    with tf.Graph().as_default(), tf.device("/device:CPU:0"):
        variable = v1.get_variable("v", initializer=tf.range(3.0) + 1.0, use_resource=True)
        utils.move_variable_initialization_to_cpu()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(variable).tolist() == [1.0, 2.0, 3.0]


def test_a_graph_without_variables():
    assert utils.move_variable_initialization_to_cpu(tf.Graph()) is None
    with pytest.raises(TypeError, match="graph must be a tf.Graph, not 3"):
        utils.move_variable_initialization_to_cpu(3)


@pytest.mark.parametrize("collection", [v1.GraphKeys.LOCAL_VARIABLES])
def test_local_variables_too(collection):
    with tf.Graph().as_default():
        with tf.device("/device:IPU:0"):
            variable = v1.get_variable("v", [2], collections=[collection], use_resource=True)
        utils.move_variable_initialization_to_cpu()
        assert variable.initializer.inputs[1].op.device == "/device:CPU:0"


def test_initial_values_made_of_other_variables(graph):
    """As TensorFlow 2.6 has it: the value where there is one, else the one that it begins with."""
    v1 = tf.compat.v1
    first = v1.get_variable("first", initializer=3.0, use_resource=True)
    second = v1.get_variable("second", initializer=first.initialized_value() * 2.0, use_resource=True)
    with v1.Session() as session:
        session.run(second.initializer)
        assert session.run(second) == 6.0
        session.run(first.initializer)
        session.run(first.assign(5.0))
        session.run(second.initializer)
        assert session.run(second) == 10.0
