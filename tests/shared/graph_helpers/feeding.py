"""What the tests of feeds and on-device loops share: datasets of numbers, and programs on the first IPU device."""

import numpy as np
import tensorflow as tf

from tf_ipu_shim import ipu


def compiled(function, inputs=()):
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(function, list(inputs))


def numbers(count, shape=(), repeat=True):
    values = np.arange(count * int(np.prod(shape)), dtype=np.float32).reshape((count, *shape))
    dataset = tf.data.Dataset.from_tensor_slices(values)
    return dataset.repeat() if repeat else dataset
