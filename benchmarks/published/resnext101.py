"""ResNeXt-101, 32 groups of 4 channels, pipelines of two IPUs.

`tf-ipu fit --system bow-pod16 -m benchmarks.published.resnext101 8 6 16`. Arguments: replicas, images of a mini-batch,
mini-batches whose gradients a replica accumulates.

The network is that of Xie et al., "Aggregated Residual Transformations for Deep Neural Networks" (2017). As in the
published run, 32 groups of channels are normalised for each image, and images come as bytes. The second stage begins
after the fourth block of the third row, and recomputation begins again at each stage.
"""

from __future__ import annotations

import sys
from typing import Any

from ipu_tensorflow_addons.keras.layers import GroupNormalization
from tensorflow import keras

from benchmarks.published import common

SIZE = 224
BLOCKS = (3, 4, 23, 3)
GROUPS = 32
LAST = (2, 3)
"""Row and block with which the first stage ends."""
layers = keras.layers


def convolved(x: Any, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> Any:
    """Returns a convolution and its normalisation."""
    x = layers.Conv2D(filters, kernel, stride, "same", groups=groups, use_bias=False)(x)
    return GroupNormalization(groups=32, epsilon=1e-5)(x)


def block(x: Any, width: int, stride: int) -> Any:
    """Returns a residual block with `width` channels inside and twice as many outside."""
    before = x
    x = layers.ReLU()(convolved(x, width))
    x = convolved(layers.ReLU()(convolved(x, width, 3, stride, GROUPS)), 2 * width)
    if stride > 1 or before.shape[-1] != 2 * width:
        before = convolved(before, 2 * width, 1, stride)
    return layers.ReLU()(layers.Add()([x, before]))


def network(batch: int) -> Any:
    with keras.ipu.PipelineStage(0):
        pixels = keras.Input((SIZE, SIZE, 3), batch, dtype="uint8")
        x = layers.Rescaling(1 / 127.5, -1.0)(pixels)
        x = layers.MaxPooling2D(3, 2, "same")(layers.ReLU()(convolved(x, 64, 7, 2)))
    for row, blocks in enumerate(BLOCKS):
        for number in range(blocks):
            with keras.ipu.PipelineStage(int((row, number) > LAST)):
                x = block(x, 128 << row, 2 if row and not number else 1)
    with keras.ipu.PipelineStage(1):
        return keras.Model(pixels, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def main(replicas: int, batch: int, accumulated: int) -> None:
    with common.strategy(2 * replicas).scope():
        common.train_in_stages(network(batch), (SIZE, SIZE, 3), replicas, batch, accumulated)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
