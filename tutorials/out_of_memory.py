"""A model that is too large for one IPU, and how sharding fixes it.

    python tutorials/out_of_memory.py

An IPU of the default system holds 897 MiB. Four layers of 8192 x 8192 float32 weights take 1 GiB, before a single
activation. What a program needs is known before it runs: the first attempt fails when it is compiled, with the largest
owners of memory by name; the second puts two layers on each of two IPUs.
"""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

import tf_ipu_shim

tf.disable_v2_behavior()

LAYERS, WIDTH, BATCH = 4, 8192, 16


def model(shards):
    """A chain of dense layers; `shards[i]` is the IPU of layer i, None leaves the layer unmarked."""

    def network(x):
        for layer, shard in enumerate(shards):
            with ipu.scopes.ipu_shard(shard) if shard is not None else contextlib.nullcontext():
                weights = tf.get_variable(f"weights_{layer}", [WIDTH, WIDTH], initializer=tf.zeros_initializer())
                x = tf.nn.relu(tf.matmul(x, weights))
        return x

    return network


def run(num_ipus, shards):
    """Builds and runs the model on a device with so many IPUs."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("cpu"):
            x = tf.placeholder(tf.float32, [BATCH, WIDTH])
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = ipu.ipu_compiler.compile(model(shards), [x])
        session.run(tf.global_variables_initializer())
        (values,) = session.run(result, {x: np.ones([BATCH, WIDTH], np.float32)})
        print("ran; the result is", values.shape)
        print(tf_ipu_shim.memory_report().to_text())


print("Four layers on one IPU:")
try:
    run(1, [None] * LAYERS)
except tf.errors.InternalError as error:
    lines = error.message.splitlines()
    first = next(index for index, line in enumerate(lines) if "Out of memory" in line)
    last = next(index for index, line in enumerate(lines) if line.startswith("The whole report"))
    print("\n".join(lines[first : last + 1]))

print("\nTwo layers on each of two IPUs:")
run(2, [layer * 2 // LAYERS for layer in range(LAYERS)])
