"""ResNet-50 on as many IPUs as replicas: `tf-ipu fit --system bow-pod16 -m benchmarks.published.resnet50 16 20 6 0.15`.

The arguments are replicas, mini-batch size, gradient accumulation count, and available memory proportion of
convolutions. Two more are optional: the optimizer (`momentum` or `lars`), and the replicas that share batch
normalisation statistics (1 by default).

As in the published runs, each replica is a sequential pipeline on one IPU: recomputation needs a pipeline. It is cut
after the same blocks. Images arrive as bytes, and the optimizer state stays on the IPU.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu

from benchmarks.published import common

LAST = ("conv2_block1", "conv2_block3", "conv3_block1", "conv3_block3", "conv4_block1", "conv4_block4")
"""The last block of each stage but the last."""
TOGETHER = 50 << 20
"""Bytes of gradients that are summed over replicas at a time."""
DECAY = 5e-5
"""Of weights, with LARS."""
pipelining = ipu.ops.pipelining_ops


class Lars(keras.optimizers.legacy.SGD):
    """Momentum, with a rate for each variable (You et al., "Large Batch Training of Convolutional Networks", 2017)."""

    def _resource_apply_dense(self, grad: tf.Tensor, var: tf.Variable, apply_state: Any = None) -> tf.Operation:
        weights, gradient = tf.norm(var), tf.norm(grad)
        rate = tf.where((weights > 0) & (gradient > 0), weights / (gradient + DECAY * weights), 1.0)
        return super()._resource_apply_dense(rate * (grad + DECAY * var), var, apply_state)


def main(replicas: int, batch: int, accumulated: int, proportion: str, optimizer: str, group: int) -> None:
    with common.strategy(replicas, proportion, group, TOGETHER).scope():
        pixels = keras.Input((224, 224, 3), dtype="uint8")
        images = keras.layers.Rescaling(1 / 127.5, -1.0)(pixels)
        network = keras.applications.ResNet50(weights=None, classifier_activation=None, input_tensor=images)
        model = keras.Model(pixels, network.output)
        stage, stages = 0, model.get_pipeline_stage_assignment()
        for assignment in stages:
            assignment.pipeline_stage = stage
            stage += assignment.layer.name in [f"{name}_out" for name in LAST]
        model.set_pipeline_stage_assignment(stages)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        steps = accumulated * replicas
        kind = Lars if optimizer == "lars" else keras.optimizers.legacy.SGD
        model.compile(kind(1e-5, 0.9), loss, steps_per_execution=steps)
        model.set_pipelining_options(
            accumulated,
            device_mapping=[0] * (len(LAST) + 1),
            gradient_accumulation_reduction_method="mean",
            pipeline_schedule=pipelining.PipelineSchedule.Sequential,
            offload_weight_update_variables=False,
        )
        common.train(model, np.zeros((224, 224, 3), np.uint8), np.int32(1), batch, steps)


if __name__ == "__main__":
    given = [*sys.argv[1:], *("momentum", "1")[len(sys.argv) - 5 :]]
    main(*map(int, given[:3]), given[3], given[4], int(given[5]))
