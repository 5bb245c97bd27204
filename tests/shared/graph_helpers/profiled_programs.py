"""Programs whose profiles are looked at."""

import json

import numpy as np
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, scopes

v1 = tf.compat.v1

IPU = "/device:IPU:0"


def fact(profile, name):
    return next(json.loads(row.value) for row in profile.facts if row.name == name)


def dense(x):
    weights = v1.get_variable("w", [64, 32], initializer=v1.ones_initializer(), use_resource=True)
    return tf.nn.relu(tf.matmul(x, weights), name="activation")


def run(model, *inputs, times=1, shards=1):
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(value.dtype, value.shape) for value in inputs]
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(model, fed)
        session.run(v1.global_variables_initializer())
        for _ in range(times):
            session.run(built, dict(zip(fed, inputs)))


X = np.ones((16, 64), np.float32)
