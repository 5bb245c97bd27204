"""ResNet-50 on as many IPUs as replicas: `tf-ipu fit --system bow-pod16 -m benchmarks.published.resnet50 16 20 6`.

Arguments: replicas, images of a mini-batch, mini-batches whose gradients a replica accumulates. As in the configuration
of the published runs, images come as bytes and the optimizer's state stays on the IPU.
"""

from __future__ import annotations

import sys

import numpy as np
from tensorflow import keras

from benchmarks.published import common


def main(replicas: int, batch: int, accumulated: int) -> None:
    with common.strategy(replicas).scope():
        pixels = keras.Input((224, 224, 3), dtype="uint8")
        images = keras.layers.Rescaling(1 / 127.5, -1.0)(pixels)
        network = keras.applications.ResNet50(weights=None, classifier_activation=None, input_tensor=images)
        model = keras.Model(pixels, network.output)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        steps = accumulated * replicas
        model.compile(keras.optimizers.legacy.SGD(1e-5, 0.9), loss, steps_per_execution=steps)
        model.set_gradient_accumulation_options(
            accumulated, gradient_accumulation_reduction_method="mean", offload_weight_update_variables=False
        )
        common.train(model, np.zeros((224, 224, 3), np.uint8), np.int32(1), batch, steps)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
