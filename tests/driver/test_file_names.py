"""A script may have a name that is not UTF-8: TensorFlow cannot read the stacks of its ops."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.subprocess

SCRIPT = """
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
with ipu.ipu_strategy.IPUStrategyV1().scope():
    print(tf.function(lambda x: x + 2.0, autograph=False)(tf.constant(1.0)).numpy())
"""


def test_a_name_in_latin_1(python):
    path = os.path.join(os.fsencode(python.directory), "büro.py".encode("latin-1"))
    with open(path, "w") as file:
        file.write(SCRIPT)
    process = subprocess.run([sys.executable, path], capture_output=True, text=True, errors="replace")
    assert (process.returncode, process.stdout) == (0, "3.0\n"), process.stderr
