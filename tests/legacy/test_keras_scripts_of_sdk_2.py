"""Scripts as they were written for the TensorFlow 2 of SDK 1.4 to 2.1, run with plain `python`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

BEGINNING = """
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu

cfg = ipu.utils.create_ipu_config()
cfg = ipu.utils.auto_select_ipus(cfg, NUMBER)
ipu.utils.configure_ipu_system(cfg)
strategy = ipu.ipu_strategy.IPUStrategy()

random = np.random.RandomState(0)
images = random.rand(128, 4, 4).astype(np.float32)
labels = (images.sum((1, 2)) > 8).astype(np.int32)

def training_data():
    data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(128, seed=1)
    return data.batch(8, drop_remainder=True).repeat()
"""

ONE_IPU = """
def layers():
    return [
        keras.layers.Flatten(),
        keras.layers.Dense(16, activation="relu"),
        ipu.keras.layers.Dropout(0.01),
        keras.layers.Dense(2, activation="softmax"),
    ]

with strategy.scope():
    model = ipu.keras.Sequential(layers(), accumulation_count=4)
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(), optimizer=keras.optimizers.SGD(0.1), metrics=["accuracy"]
    )
    history = model.fit(training_data(), epochs=12, steps_per_epoch=4, steps_per_run=2).history
    loss, accuracy = model.evaluate(images, labels, batch_size=8, verbose=0)
    classes = model.predict(images, batch_size=8).argmax(-1)
print()
print(history["loss"][-1] < history["loss"][0], loss < history["loss"][0], classes.shape)
print(abs(np.mean(classes == labels) - accuracy) < 1e-6)

weight = None
with strategy.scope():
    weight = tf.Variable(1.0)

    @tf.function
    def double():
        return weight.assign(weight * 2.0)

    print(float(strategy.experimental_run_v2(double)))
"""

PIPELINE = """
with strategy.scope():
    inputs = keras.Input((4, 4))
    with ipu.keras.PipelineStage(0):
        x = keras.layers.Flatten()(inputs)
        x = keras.layers.Dense(16, activation="relu")(x)
    with ipu.keras.PipelineStage(1):
        x = keras.layers.Dense(2)(x)
    model = ipu.keras.PipelineModel(inputs, x, gradient_accumulation_count=8)
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.compat.v1.train.GradientDescentOptimizer(0.02),
    )
    history = model.fit(training_data(), epochs=6, steps_per_epoch=6)
    stages = ipu.keras.PipelineSequential(
        [[keras.layers.Flatten(), keras.layers.Dense(16)], [keras.layers.Dense(2)]],
        gradient_accumulation_count=4,
        pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.Interleaved,
    )
    outputs = stages.predict(images, batch_size=8)
print()
print(model.replication_factor, len(history.epoch), history.history["loss"][-1] < history.history["loss"][0])
print(outputs.shape, [len(layer.weights) for layer in stages.layers])
try:
    model(images)
except ValueError as error:
    print("called:", "`fit`, `evaluate`, or `predict`" in str(error))
"""


def run(script: str, ipus: int, sdk: str) -> str:
    with tempfile.TemporaryDirectory() as locks:
        done = subprocess.run(
            [sys.executable, "-c", BEGINNING.replace("NUMBER", str(ipus)) + script],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "TF_IPU_SHIM_LOCK_DIR": locks, "TF_IPU_SHIM_SDK": sdk},
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_one_ipu() -> None:
    out = run(ONE_IPU, 1, "2.1")
    assert out.splitlines()[-3:] == ["True True (128,)", "True", "2.0"]
    assert "4/4 [====" in out and "32/32" not in out  # steps, not mini-batches


def test_pipelines_and_replicas_of_them() -> None:
    out = run(PIPELINE, 4, "3.4")  # whose own names these are not
    assert out.splitlines()[-3:] == ["2 6 True", "(128, 2) [0, 2, 2]", "called: True"]
    assert "6/6 [====" in out
