"""Datasets that are made, or iterated over, under an IPU device."""

import numpy as np
import tensorflow as tf

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
