"""ViT-B/16 fine-tuning as a pipeline of four IPUs: `tf-ipu fit --system bow-pod16 -m benchmarks.published.vit 4 17 32`.

Arguments: replicas, images of a mini-batch, mini-batches whose gradients a replica accumulates. As in the published
runs, each IPU has three encoder layers, matmuls may use 0.3 of a tile, and a checkpoint follows each encoder.
"""

from __future__ import annotations

import sys
from typing import Any

import tensorflow as tf
from tensorflow import keras

from benchmarks.published import common
from benchmarks.published.bert import Checkpoint, Places, encoder

WIDTH, HEADS, PATCH, IMAGE = 768, 12, 16, 224
layers = keras.layers


class Begin(layers.Layer):  # type: ignore[misc]
    """Puts the token of the class before the patches."""

    def build(self, shape: Any) -> None:
        self.token = self.add_weight("token", (1, 1, shape[-1]), initializer="zeros")

    def call(self, x: Any) -> Any:
        return tf.concat([tf.tile(self.token, [x.shape[0], 1, 1]), x], 1)


def main(replicas: int, batch: int, accumulated: int) -> None:
    with common.strategy(4 * replicas, "0.3").scope():
        with keras.ipu.PipelineStage(0):
            pixels = keras.Input((IMAGE, IMAGE, 3), batch, dtype="float16")
            x = layers.Conv2D(WIDTH, PATCH, PATCH)(pixels)
            x = Places()(Begin()(layers.Reshape((-1, WIDTH))(x)))
        for stage in range(4):
            with keras.ipu.PipelineStage(stage):
                for _ in range(3):
                    x = Checkpoint()(encoder(x, WIDTH, HEADS))
        with keras.ipu.PipelineStage(3):
            model = keras.Model(pixels, layers.Dense(1000)(x[:, 0]))
        common.train_in_stages(model, (IMAGE, IMAGE, 3), replicas, batch, accumulated, "float16")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
