"""ResNet-50 inference: `tf-ipu fit --system c600 -m benchmarks.published.resnet50_inference 4`.

Arguments: images of a batch; the number of batches of a run, 128 if not given. Images come as bytes.
"""

from __future__ import annotations

import sys

import tensorflow as tf
from tensorflow import keras

from benchmarks.published import common


def main(batch: int, batches: int = 128) -> None:
    with common.strategy(1).scope():
        pixels = keras.Input((224, 224, 3), batch, dtype="uint8")
        images = keras.layers.Rescaling(1 / 127.5, -1.0)(pixels)
        model = keras.applications.ResNet50(weights=None, input_tensor=images)
        model.compile(steps_per_execution=batches)
        data = tf.data.Dataset.from_tensors(tf.zeros([224, 224, 3], tf.uint8)).repeat(batch * batches)
        model.predict(data.batch(batch, drop_remainder=True))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
