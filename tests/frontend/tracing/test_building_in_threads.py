"""Threads build models and loops at the same time: none sees what another is in the middle of."""

import concurrent.futures
import threading

import numpy as np
import pytest
import tensorflow as tf
from keras_models import keras, strategy
from tf_ipu_shim.ipu import loops, optimizers
from tf_ipu_shim.ipu.ops import internal_ops

from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import stage_of

v1 = tf.compat.v1
PipelineStage = keras.ipu.PipelineStage


def together(*functions):
    """Runs each function in a thread of its own; it is given what waits until all threads have come to it."""
    barrier = threading.Barrier(len(functions))

    def run(function):
        try:
            return function(lambda: barrier.wait(60))
        except BaseException:
            barrier.abort()
            raise

    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        return list(pool.map(run, functions))


def layer(width=2):
    made = keras.layers.Dense(width)
    made(keras.Input((3,)))
    return stage_of(made), stage_of(made._inbound_nodes[0])


def test_stages(ipus):
    ipus(2)

    def in_stage(number):
        def build(meet):
            with strategy().scope():
                with PipelineStage(number):
                    meet()
                    inside = layer()
                    with pytest.raises(RuntimeError, match="must not be nested"), PipelineStage(number + 1):
                        pass
                    meet()
                meet()
                return inside, layer()

        return build

    def outside(meet):
        with strategy().scope():
            meet()
            meanwhile = layer()
            meet()
            meet()
            return meanwhile, layer()

    none = (None, None)
    assert together(in_stage(0), outside, in_stage(1)) == [((0, 0), none), (none, none), ((1, 1), none)]


def test_a_layer_s_constructor_reads_as_before(ipus):
    """Keras makes the configuration of a layer from the arguments that its constructor names."""
    ipus(2)

    class Plain(keras.layers.Layer):
        pass

    with strategy().scope(), PipelineStage(0):
        made = Plain(False, "mine")
    assert stage_of(made) == 0
    assert made.get_config()["name"] == "mine" and made.get_config()["trainable"] is False
    again = Plain.from_config(made.get_config())
    assert again.name == "mine" and stage_of(again) is None


def test_counters_of_loops():
    def build(times):
        def in_graph(meet):
            def body(total):
                meet()
                counter = internal_ops.get_current_iteration_counter()
                meet()
                return total + counter

            with tf.Graph().as_default(), v1.Session() as session:
                return session.run(loops.repeat(times, body, [0]))

        return in_graph

    assert together(build(4), build(6)) == [0 + 1 + 2 + 3, 0 + 1 + 2 + 3 + 4 + 5]


def test_accumulators_of_loops():
    def build(slope):
        def in_graph(meet):
            with tf.Graph().as_default(), v1.Session() as session:
                weight = v1.get_variable("weight", [], initializer=v1.ones_initializer(), use_resource=True)
                optimizer = optimizers.GradientAccumulationOptimizerV2(v1.train.GradientDescentOptimizer(0.1), 2)

                def body():
                    meet()
                    update = optimizer.minimize(weight * slope)
                    meet()
                    return update

                program = loops.repeat(4, body, [])
                session.run(v1.global_variables_initializer())
                session.run(program)
                return session.run(weight)

        return in_graph

    # Two updates of two mini-batches each.
    np.testing.assert_allclose(together(build(1.0), build(-0.5)), [1 - 0.4, 1 + 0.2], rtol=1e-6)
