"""Asynchronous eager execution is refused: an op that asks Python would wait for a lock that Python holds."""

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

IPU = "/device:IPU:0"


def jit(x):
    with tf.device(IPU):
        return tf.function(lambda x: x * 2.0, jit_compile=True)(x)


@pytest.fixture
def asynchronous(ipus):
    ipus()
    tf.config.experimental.set_synchronous_execution(False)
    yield
    try:
        context.async_clear_error()
    finally:
        tf.config.experimental.set_synchronous_execution(True)


def test_a_program(asynchronous):
    with pytest.raises(tf.errors.UnimplementedError, match="set_synchronous_execution"):
        jit(tf.constant([4.0])).numpy()


def test_afterwards(ipus):
    ipus()
    assert float(jit(tf.constant(4.0))) == 8.0
