"""ViT-B/16 inference on one IPU: `tf-ipu fit --system c600 -m benchmarks.published.vit_inference 8`.

Argument: images of a batch. As in PopRT's benchmarks, a run takes 128 batches, 32 tiles are I/O tiles, and matmuls may
use all of a tile.
"""

from __future__ import annotations

import sys

import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu

from benchmarks.published import common
from benchmarks.published.bert import Places
from benchmarks.published.transformer_inference import encoder
from benchmarks.published.vit import HEADS, IMAGE, PATCH, WIDTH, Begin

LAYERS, BATCHES, IO_TILES = 12, 128, 32
layers = keras.layers


def main(batch: int) -> None:
    with common.strategy(1, "1.0", io_tiles=IO_TILES).scope():
        pixels = keras.Input((IMAGE, IMAGE, 3), batch, dtype="float16")
        x = layers.Conv2D(WIDTH, PATCH, PATCH)(pixels)
        x = Places()(Begin()(layers.Reshape((-1, WIDTH))(x)))
        for _ in range(LAYERS):
            x = encoder(x, WIDTH, HEADS, ipu.nn_ops.gelu)
        model = keras.Model(pixels, layers.Dense(1000)(x[:, 0]))
        common.predict(model, tf.zeros([IMAGE, IMAGE, 3], tf.float16), batch, BATCHES)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
