"""Programs for tests of both ways to run one."""

import tensorflow as tf
from harness import IPU
from tf_ipu_shim.ipu import ipu_compiler, scopes

v1 = tf.compat.v1


def compiled(model, *inputs):
    with scopes.ipu_scope(IPU):
        return ipu_compiler.compile(model, list(inputs))
