"""EfficientNet-B4 with groups of 16 channels, pipelines of two IPUs.

Run it by `tf-ipu fit --system bow-pod16 -m benchmarks.published.efficientnet 8 3 256 0.4`. The arguments are replicas,
mini-batch size, gradient accumulation count, and available memory proportion of convolutions.

The network is that of Tan and Le, "EfficientNet" (2019), with the changes of Masters et al., "Making EfficientNet More
Efficient" (2021). Convolutions have groups of 16 channels, channels are expanded by 4 instead of 6, and each image has
group normalisation. As in the published runs, there are 4 groups, and images of 380 x 380 pixels arrive as bytes. The
second stage begins with the fourth row of blocks. Recomputation begins again at each stage.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from ipu_tensorflow_addons.keras.layers import GroupNormalization
from tensorflow import keras

from benchmarks.published import common

SIZE = 380
WIDTH, DEPTH = 1.4, 1.8
"""Factors of B4 for B0's channels and blocks."""
ROWS = ((3, 1, 16, 1, 1), (3, 2, 24, 2, 4), (5, 2, 40, 2, 4), (3, 3, 80, 2, 4), (5, 3, 112, 1, 4), (5, 4, 192, 2, 4),
        (3, 1, 320, 1, 4))  # fmt: skip
"""The block groups of B0: kernel, blocks, channels, stride of the first block, expansion of channels."""
SECOND = 3
"""The row with which the second stage begins."""
GROUP = 16
layers = keras.layers


def channels(number: int) -> int:
    """Returns channels times `WIDTH`, rounded to a multiple of eight, by at most a tenth down."""
    wanted = number * WIDTH
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wanted else rounded


def normalised(x: Any) -> Any:
    return GroupNormalization(groups=4, epsilon=1e-3)(x)


def convolved(x: Any, filters: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> Any:
    return layers.Conv2D(filters, kernel, stride, "same", groups=groups, use_bias=False)(x)


def block(x: Any, kernel: int, filters: int, stride: int, expanded: int) -> Any:
    """A residual block with more channels inside than outside; the content of the whole image weights these."""
    before, outside = x, x.shape[-1]
    inside = outside * expanded
    if expanded > 1:
        x = layers.Activation("swish")(normalised(convolved(x, inside)))
    x = layers.Activation("swish")(normalised(convolved(x, inside, kernel, stride, inside // GROUP)))
    weight = layers.GlobalAveragePooling2D(keepdims=True)(x)
    weight = layers.Conv2D(max(1, outside // 4), 1, activation="swish")(weight)
    x = layers.Multiply()([x, layers.Conv2D(inside, 1, activation="sigmoid")(weight)])
    x = normalised(convolved(x, filters))
    return layers.Add()([x, before]) if stride == 1 and filters == outside else x


def network(batch: int) -> Any:
    with keras.ipu.PipelineStage(0):
        pixels = keras.Input((SIZE, SIZE, 3), batch, dtype="uint8")
        x = layers.Rescaling(1 / 127.5, -1.0)(pixels)
        x = layers.Activation("swish")(normalised(convolved(x, channels(32), 3, 2)))
    for number, (kernel, blocks, filters, stride, expanded) in enumerate(ROWS):
        with keras.ipu.PipelineStage(int(number >= SECOND)):
            for repeated in range(math.ceil(blocks * DEPTH)):
                x = block(x, kernel, channels(filters), 1 if repeated else stride, expanded)
    with keras.ipu.PipelineStage(1):
        x = layers.Activation("swish")(normalised(convolved(x, channels(1280))))
        return keras.Model(pixels, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def main(replicas: int, batch: int, accumulated: int, proportion: str) -> None:
    with common.strategy(2 * replicas, proportion).scope():
        common.train_in_stages(network(batch), (SIZE, SIZE, 3), replicas, batch, accumulated)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4])
