"""The dense layers of Graphcore's TensorFlow 1 tutorial on pipelines, with synthetic data.

`tf-ipu fit --system m2000 -m benchmarks.published.dense_layers pipeline`. Argument: `one` IPU, two `shards` or a
`pipeline` of two IPUs.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

os.environ["TF_POPLAR_FLAGS"] = "--use_synthetic_data --synthetic_data_initializer=random"

import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

BATCH, ACCUMULATED, RUNS = 32, 16, 10
WIDTHS = (256, 128, 64, 32)
ON_FIRST = 3
"""Layers on the first IPU of two."""


def dense(x: Any, width: int, name: str) -> Any:
    kernel = tf.get_variable(f"{name}/kernel", [x.shape[1], width])
    return tf.matmul(x, kernel) + tf.get_variable(f"{name}/bias", [width])


def first(images: Any, labels: Any) -> Any:
    x = tf.reshape(images, [BATCH, 784])
    for width in WIDTHS[:ON_FIRST]:
        x = tf.nn.relu(dense(x, width, f"dense{width}"))
    return x, labels


def second(x: Any, labels: Any) -> Any:
    for width in WIDTHS[ON_FIRST:]:
        x = tf.nn.relu(dense(x, width, f"dense{width}"))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=dense(x, 10, "logits"))
    return tf.reduce_mean(losses)


def main(kind: str) -> None:
    tf.disable_eager_execution()
    tf.disable_v2_behavior()
    element = (np.zeros([28, 28], np.float32), np.int32(0))
    data = tf.data.Dataset.from_tensors(element).repeat().batch(BATCH, drop_remainder=True)
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def step(rate: Any, images: Any, labels: Any) -> Any:
        with ipu.scopes.ipu_shard(0):
            x = first(images, labels)
        with ipu.scopes.ipu_shard(int(kind == "shards")):
            loss = second(*x)
            optimizer = tf.train.GradientDescentOptimizer(rate)
            optimizer = ipu.optimizers.GradientAccumulationOptimizerV2(optimizer, num_mini_batches=ACCUMULATED)
            return rate, optimizer.minimize(loss), outfeed.enqueue(loss)

    def pipeline(rate: Any) -> Any:
        def update(rate: Any, loss: Any) -> Any:
            return ipu.pipelining_ops.OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(rate), loss)

        return ipu.pipelining_ops.pipeline(
            [lambda rate, images, labels: (rate, *first(images, labels)), lambda rate, *x: (rate, second(*x))],
            gradient_accumulation_count=ACCUMULATED,
            repeat_count=RUNS,
            inputs=[rate],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=update,
            pipeline_schedule=ipu.pipelining_ops.PipelineSchedule.Grouped,
            outfeed_loss=True,
        )

    def loop(rate: Any) -> Any:
        return ipu.loops.repeat(ACCUMULATED * RUNS, step, [rate], infeed)

    with tf.device("cpu"):
        rate = tf.placeholder(np.float32, [])
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        compiled = ipu.ipu_compiler.compile(pipeline if kind == "pipeline" else loop, inputs=[rate])
    ipu.utils.move_variable_initialization_to_cpu()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1 if kind == "one" else 2
    config.configure_ipu_system()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(infeed.initializer)
        session.run(compiled, {rate: 0.01})


if __name__ == "__main__":
    main(sys.argv[1])
