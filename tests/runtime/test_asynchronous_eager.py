"""Asynchronous eager execution is refused: an op that asks Python would wait for a lock that Python holds."""

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

SCRIPT = """
import os

import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
tf.config.experimental.set_synchronous_execution(False)
try:
    with tf.device("/device:IPU:0"):
        tf.ones([4]).numpy()
except tf.errors.UnimplementedError as error:
    print(error, flush=True)
os._exit(0)  # what TensorFlow still has waiting
"""


def test_an_op(forked):
    printed = forked.succeeds(forked.script(SCRIPT))
    assert "Asynchronous eager execution" in printed and "set_synchronous_execution(True)" in printed
