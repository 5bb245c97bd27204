"""U-Net for medical images as a pipeline of four IPUs: `tf-ipu fit --system bow-2000 -m benchmarks.published.unet 24`.

Argument: mini-batches whose gradients are accumulated, of one image each. The network is that of Ronneberger et al.,
"U-Net" (2015), with images of 572 x 572 pixels. As in the published run, stages begin after the second pooling, and at
the second and fourth row of the way up. Skipped tensors are cropped before they leave their IPU.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu

from benchmarks.published import common

SIZE, OUTPUT, CLASSES = 572, 388, 2
FILTERS = (64, 128, 256, 512, 1024)
DOWN_STAGES, UP_STAGES = (0, 0, 1, 1, 1), (1, 2, 2, 3)
"""The stage of each row of layers, on the way down and up."""
layers = keras.layers
pipelining = ipu.ops.pipelining_ops


def convolved(x: Any, filters: int) -> Any:
    for _ in range(2):
        x = layers.Conv2D(filters, 3, activation="relu")(x)
    return x


def cropped(x: Any, size: int) -> Any:
    before = (x.shape[1] - size) // 2
    after = x.shape[1] - size - before
    return layers.Cropping2D(((before, after), (before, after)))(x)


def up_sizes(size: int) -> list[int]:
    """Returns the sizes of the images that the way up reads, the smallest first."""
    for _ in FILTERS[1:]:
        size = (size - 4) // 2
    sizes = []
    size -= 4
    for _ in FILTERS[1:]:
        sizes.append(2 * size)
        size = 2 * size - 4
    return sizes


def network() -> Any:
    stage = keras.ipu.PipelineStage
    sizes = up_sizes(SIZE)
    skipped = []
    with stage(0):
        pixels = x = keras.Input((SIZE, SIZE, 1), 1, dtype="float16")
    for row, (filters, number) in enumerate(zip(FILTERS, DOWN_STAGES)):
        with stage(number):
            x = convolved(layers.MaxPooling2D()(x) if row else x, filters)
            if row < len(sizes):
                skipped.append(cropped(x, sizes[-1 - row]))
    for row, number in enumerate(UP_STAGES):
        filters = FILTERS[-2 - row]
        with stage(number):
            raised = layers.Conv2DTranspose(filters, 2, 2, "same", activation="relu")(x)
        with stage(UP_STAGES[min(row + 1, 3)] if row in (0, 2) else number):
            x = convolved(layers.Concatenate()([skipped[-1 - row], raised]), filters)
    with stage(UP_STAGES[-1]):
        return keras.Model(pixels, layers.Conv2D(CLASSES, 1)(x))


def main(accumulated: int) -> None:
    with common.strategy(4).scope():
        model = network()
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.legacy.Adam(1e-3), loss, steps_per_execution=accumulated)
        model.set_pipelining_options(
            accumulated,
            gradient_accumulation_reduction_method="mean",
            pipeline_schedule=pipelining.PipelineSchedule.Grouped,
            recomputation_mode=pipelining.RecomputationMode.RecomputeAndBackpropagateInterleaved,
            offload_weight_update_variables=True,
        )
        label = np.zeros((OUTPUT, OUTPUT), np.int32)
        common.train(model, tf.zeros([SIZE, SIZE, 1], tf.float16), label, 1, accumulated)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
