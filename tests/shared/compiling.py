"""What the tests of `ipu_compiler.compile` share: placeholders, programs on the first IPU device, sessions."""

import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, scopes

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def placeholder(*shape, dtype=tf.float32):
    return v1.placeholder(dtype, shape)


def compile_(model, *inputs):
    with scopes.ipu_scope(IPU):
        return ipu_compiler.compile(model, list(inputs))


def run(fetched, feed=None):
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(fetched, feed)
