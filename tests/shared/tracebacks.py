"""What scripts show of their errors."""

import re

COMMON = """
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
tf.disable_v2_behavior()
"""

FRAME = re.compile(r'^  File "(.+)", line (\d+), in ', re.M)


def traceback_of(process):
    """What is shown from the error on; TensorFlow's own log may come before."""
    assert process.returncode == 1
    return process.stderr[process.stderr.index("Traceback") :]
