"""The MNIST network of Graphcore's Keras tutorial: `tf-ipu fit --system m2000 -m benchmarks.published.mnist_cnn 937`.

Arguments: mini-batches of 64 in a run of all replicas. Optional are the replicas, and the mini-batches whose gradients
two pipeline stages accumulate.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu

BATCH = 64
layers = keras.layers


def network(stages: int) -> Any:
    def stage(number: int) -> Any:
        return keras.ipu.PipelineStage(number) if stages > 1 else contextlib.nullcontext()

    images = keras.Input((28, 28, 1), BATCH)
    with stage(0):
        x = layers.Conv2D(32, 3, activation="relu")(images)
        x = layers.Conv2D(64, 3, activation="relu")(layers.MaxPooling2D(2)(x))
    with stage(1):
        x = layers.Dropout(0.5)(layers.Flatten()(layers.MaxPooling2D(2)(x)))
        return keras.Model(images, layers.Dense(10, activation="softmax")(x))


def main(steps: int, replicas: int = 1, accumulated: int = 0) -> None:
    stages = 2 if accumulated else 1
    config = ipu.config.IPUConfig()
    config.device_connection.type = ipu.config.DeviceConnectionType.ON_DEMAND
    config.auto_select_ipus = replicas * stages
    config.configure_ipu_system()
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = network(stages)
        if accumulated:
            model.set_pipelining_options(accumulated, pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.Grouped)
        model.compile("sgd", "categorical_crossentropy", metrics=["accuracy"], steps_per_execution=steps)
        data = tf.data.Dataset.from_tensors((tf.zeros([28, 28, 1]), tf.zeros([10]))).repeat(BATCH * steps)
        model.fit(data.batch(BATCH, drop_remainder=True), verbose=0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
