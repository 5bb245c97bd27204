"""A training step whose memory is kept: what it needs is in a file, and more than that fails.

    tf-ipu fit tutorials/memory_in_ci.py
    tf-ipu run --write-baseline memory.json tutorials/memory_in_ci.py
    tf-ipu run --baseline memory.json tutorials/memory_in_ci.py                # passes
    tf-ipu run --baseline memory.json tutorials/memory_in_ci.py --width 300    # fails, and says what grew

tutorials/memory_in_ci.md explains it.
"""

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

from tf_ipu_shim import testing

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=256, help="of the layer in the middle")
parser.add_argument("--batch", type=int, default=32, help="samples of a step")
arguments = parser.parse_args()

FEATURES, STEPS = 64, 4

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

x = np.random.RandomState(0).randn(STEPS * arguments.batch, FEATURES).astype(np.float32)
y = x.sum(axis=1, keepdims=True) / FEATURES

with ipu.ipu_strategy.IPUStrategy().scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(arguments.width, "relu", input_shape=[FEATURES], name="wide"),
            tf.keras.layers.Dense(1, name="last"),
        ]
    )
    model.compile("sgd", "mse", steps_per_execution=STEPS)
    model.fit(x, y, batch_size=arguments.batch, shuffle=False, verbose=0)

# What no file needs to say: a limit of one's own, and room for what is not modelled, such as code.
testing.assert_fits(headroom=0.2)
testing.assert_peak_below(10_000_000)
print("The training step fits, with a fifth of each tile to spare.")
