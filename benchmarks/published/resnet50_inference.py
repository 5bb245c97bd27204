"""ResNet-50 inference: `tf-ipu fit --system c600 -m benchmarks.published.resnet50_inference 4`.

Arguments: images of a batch; optional are the batches of a run (128), and I/O tiles (0). Images come as bytes.
"""

from __future__ import annotations

import sys

import tensorflow as tf
from tensorflow import keras

from benchmarks.published import common


def main(batch: int, batches: int = 128, io_tiles: int = 0) -> None:
    with common.strategy(1, io_tiles=io_tiles).scope():
        pixels = keras.Input((224, 224, 3), batch, dtype="uint8")
        images = keras.layers.Rescaling(1 / 127.5, -1.0)(pixels)
        model = keras.applications.ResNet50(weights=None, input_tensor=images)
        common.predict(model, tf.zeros([224, 224, 3], tf.uint8), batch, batches)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
