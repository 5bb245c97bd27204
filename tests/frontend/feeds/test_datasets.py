"""Datasets that are made, or iterated over, under an IPU device."""

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu.distributed.popdist_strategy import PopDistStrategy

from tf_ipu_shim import ipu

IPU = "/device:IPU:0"


def test_a_dataset_made_eagerly_under_the_device():
    with tf.device(IPU):
        dataset = tf.data.Dataset.range(5).map(lambda x: x * 2).batch(2).prefetch(1)
        got = np.concatenate([batch.numpy() for batch in dataset])
    np.testing.assert_array_equal(got, [0, 2, 4, 6, 8])


def test_a_dataset_made_in_a_graph_under_the_device():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        with ipu.scopes.ipu_scope(IPU):
            iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(3).batch(3))
            doubled = iterator.get_next() * 2
        session.run(iterator.initializer)
        np.testing.assert_array_equal(session.run(doubled), [0, 2, 4])


@pytest.mark.parametrize("strategy", [False, True])
def test_functions_of_datasets_made_on_an_ipu_run_on_the_host(strategy):
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = 1
    options.configure_ipu_system()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        scope = PopDistStrategy().scope() if strategy else ipu.scopes.ipu_scope("/device:IPU:0")
        with scope:
            dataset = tf.compat.v1.data.Dataset.range(3).repeat()
            dataset = dataset.map(lambda x: tf.cast(x, tf.float32) + 3.0).filter(lambda x: x > 3.5)
            infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset)
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            total = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(4, lambda v, x: v + x, [0.0], infeed), [])
        session.run(infeed.initializer)
        assert session.run(total) == [2 * (4.0 + 5.0)]
