"""BERT pre-training as pipelines of four IPUs; the first has the embeddings and the prediction head.

`tf-ipu fit --system bow-pod16 -m benchmarks.published.bert 768 12 4 32 510 0,4,4,4 0.28,0.26,0.28,0.28` is BERT-Base.
With sequences of 384 words: `768 12 4 8 510 0,4,4,4 0.28,0.26,0.28,0.28 384 56`. The arguments are:

1. width
2. attention heads
3. replicas
4. mini-batch size
5. gradient accumulation count
6. encoder layers on each IPU
7. available memory proportion of matmuls on each IPU
8. length of a sequence (128 by default)
9. predicted words of a sequence (20 by default)

As in the configurations of the published runs, a recomputation checkpoint follows each encoder. One matmul computes
queries, keys and values, without a bias. The norms are the IPU's, and the optimizer state is in Streaming Memory.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf
from ipu_tensorflow_addons.keras.layers import LayerNormalization
from tensorflow import keras
from tensorflow.python import ipu

from benchmarks.published import common

WORDS = 30400
IPUS = 4
layers = keras.layers
pipelining = ipu.ops.pipelining_ops


class Places(layers.Layer):  # type: ignore[misc]
    """Adds a learnt vector for each position of the sequence."""

    def build(self, shape: Any) -> None:
        self.table = self.add_weight("table", shape[1:], initializer="zeros")

    def call(self, x: Any) -> Any:
        return x + self.table


class Attention(layers.Layer):  # type: ignore[misc]
    """Self-attention: a weighted sum of all positions' values for each position.

    Args:
        heads: number of attention heads.
        products: matmuls that make queries, keys and values: one for all or three.
    """

    def __init__(self, heads: int, products: int = 1) -> None:
        super().__init__()
        self.heads, self.products = heads, products

    def build(self, shape: Any) -> None:
        each = (shape[-1], 3 // self.products * shape[-1])
        self.kernels = [self.add_weight(f"kernel{n}", each, initializer="zeros") for n in range(self.products)]

    def call(self, x: Any) -> Any:
        batch, places, width = x.shape
        query, key, value = (
            tf.transpose(tf.reshape(one, [batch, places, self.heads, width // self.heads]), [0, 2, 1, 3])
            for kernel in self.kernels
            for one in tf.split(tf.matmul(x, kernel), 3 // self.products, axis=-1)
        )
        scores = tf.matmul(query, key, transpose_b=True) * (width // self.heads) ** -0.5
        taken = tf.matmul(tf.nn.softmax(scores), value)
        return tf.reshape(tf.transpose(taken, [0, 2, 1, 3]), [batch, places, width])


class Checkpoint(layers.Layer):  # type: ignore[misc]
    """Recomputation begins here."""

    def call(self, x: Any) -> Any:
        return pipelining.recomputation_checkpoint(x)


def norm(x: Any) -> Any:
    return LayerNormalization(epsilon=1e-3)(x)


def encoder(x: Any, width: int, heads: int) -> Any:
    x = norm(x + layers.Dense(width, use_bias=False)(Attention(heads)(x)))
    return Checkpoint()(norm(x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(x))))


def bert(width: int, heads: int, batch: int, encoders: list[int], places: int, predicted: int) -> Any:
    words = keras.Input((places,), batch, dtype="int32")
    x = words
    for stage, count in enumerate(encoders):
        with keras.ipu.PipelineStage(stage):
            if stage == 0:
                x = norm(Places()(layers.Embedding(WORDS, width)(x)))
            for _ in range(count):
                x = encoder(x, width, heads)
    with keras.ipu.PipelineStage(IPUS):
        masked = layers.Dense(width, activation="gelu")(x[:, :predicted])
        return keras.Model(words, layers.Dense(WORDS)(masked))


def main(
    width: int,
    heads: int,
    replicas: int,
    batch: int,
    accumulated: int,
    encoders: list[int],
    proportions: list[str],
    places: int = 128,
    predicted: int = 20,
) -> None:
    ipus = [*range(IPUS), 0]
    options = [
        pipelining.PipelineStageOptions(
            matmul_options={"availableMemoryProportion": proportions[one], "partialsType": "half"}
        )
        for one in ipus
    ]
    with common.strategy(replicas * IPUS).scope():
        model = bert(width, heads, batch, encoders, places, predicted)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        steps = accumulated * replicas
        model.compile(keras.optimizers.legacy.SGD(1e-5, 0.9), loss, steps_per_execution=steps)
        model.set_pipelining_options(
            accumulated,
            device_mapping=ipus,
            forward_propagation_stages_poplar_options=options,
            backward_propagation_stages_poplar_options=options,
            gradient_accumulation_reduction_method="mean",
            pipeline_schedule=pipelining.PipelineSchedule.Grouped,
            recomputation_mode=pipelining.RecomputationMode.RecomputeAndBackpropagateInterleaved,
            offload_weight_update_variables=True,
        )
        label = np.zeros(predicted, np.int32)
        common.train(model, np.zeros(places, np.int32), label, batch, steps)


if __name__ == "__main__":
    encoders = [int(count) for count in sys.argv[6].split(",")]
    main(*map(int, sys.argv[1:6]), encoders, sys.argv[7].split(","), *map(int, sys.argv[8:]))
