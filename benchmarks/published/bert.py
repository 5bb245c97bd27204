"""BERT pre-training as pipelines of four IPUs, embeddings and what is predicted on the first of them.

`tf-ipu fit --system bow-pod16 -m benchmarks.published.bert 768 12 4 32 510 0,4,4,4` is BERT-Base. Arguments: width,
attention heads, replicas, sequences of a mini-batch, mini-batches whose gradients a replica accumulates, encoder layers
on each IPU.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from tensorflow import keras
from tensorflow.python import ipu

from benchmarks.published import common

WORDS, PLACES, PREDICTED = 30400, 128, 20
IPUS = 4
layers = keras.layers


class Places(layers.Layer):  # type: ignore[misc]
    """Adds what is learnt for each place of the sequence."""

    def build(self, shape: Any) -> None:
        self.table = self.add_weight("table", (PLACES, shape[-1]), initializer="zeros")

    def call(self, x: Any) -> Any:
        return x + self.table


def norm(x: Any) -> Any:
    return layers.LayerNormalization(epsilon=1e-3)(x)


def encoder(x: Any, width: int, heads: int) -> Any:
    x = norm(x + layers.MultiHeadAttention(heads, width // heads)(x, x))
    return norm(x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x)))


def bert(width: int, heads: int, encoders: list[int]) -> Any:
    words = keras.Input((PLACES,), dtype="int32")
    x = words
    for stage, count in enumerate(encoders):
        with keras.ipu.PipelineStage(stage):
            if stage == 0:
                x = norm(Places()(layers.Embedding(WORDS, width)(x)))
            for _ in range(count):
                x = encoder(x, width, heads)
    with keras.ipu.PipelineStage(IPUS):
        masked = layers.Dense(width, activation="gelu")(x[:, :PREDICTED])
        return keras.Model(words, layers.Dense(WORDS)(masked))


def main(width: int, heads: int, replicas: int, batch: int, accumulated: int, encoders: list[int]) -> None:
    with common.strategy(replicas * IPUS).scope():
        model = bert(width, heads, encoders)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        steps = accumulated * replicas
        model.compile(keras.optimizers.legacy.SGD(1e-5, 0.9), loss, steps_per_execution=steps)
        model.set_pipelining_options(
            accumulated,
            device_mapping=[*range(IPUS), 0],
            gradient_accumulation_reduction_method="mean",
            pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.Grouped,
        )
        label = np.zeros(PREDICTED, np.int32)
        common.train(model, np.zeros(PLACES, np.int32), label, batch, steps)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:6]), [int(count) for count in sys.argv[6].split(",")])
