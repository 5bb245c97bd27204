"""ResNet-50 for small images in two pipeline stages, whose memory a page on profiles shows.

`tf-ipu fit --system m2000 -m benchmarks.published.resnet50_stages 32`. Argument: images of a mini-batch.
"""

from __future__ import annotations

import sys

from tensorflow import keras

from benchmarks.published import common

SECOND = "conv4_block1_1_conv"
"""The first layer of the second stage."""


def main(batch: int) -> None:
    with common.strategy(2).scope():
        pixels = keras.Input((64, 64, 3), batch, dtype="uint8")
        images = keras.layers.Rescaling(1 / 127.5, -1.0)(pixels)
        model = keras.applications.ResNet50(
            weights=None, classifier_activation=None, include_top=True, input_tensor=images, input_shape=(64, 64, 3)
        )
        stage, stages = 0, model.get_pipeline_stage_assignment()
        for assignment in stages:
            stage = max(stage, int(assignment.layer.name == SECOND))
            assignment.pipeline_stage = stage
        model.set_pipeline_stage_assignment(stages)
        common.train_in_stages(model, (64, 64, 3), 1, batch, 8)


if __name__ == "__main__":
    main(int(sys.argv[1]))
