"""Trains a layer in a loop on the device."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

tf.disable_v2_behavior()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
random = np.random.RandomState(0)
inputs, targets = random.rand(256, 64).astype("float32"), random.rand(256, 1).astype("float32")


def step(x, y):
    hidden = tf.layers.dense(x, 128, activation=tf.nn.relu)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - y))
    with tf.control_dependencies([tf.train.AdamOptimizer(0.01).minimize(loss)]):
        return tf.identity(loss)


with ipu.scopes.ipu_scope("/device:IPU:0"):
    loss = ipu.ipu_compiler.compile(step, [tf.constant(inputs), tf.constant(targets)])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(10):
        session.run(loss)
