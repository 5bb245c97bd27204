"""BERT inference on one IPU: `tf-ipu fit --system c600 -m benchmarks.published.transformer_inference 12 768 12 256 8`.

Arguments: encoder layers, width, attention heads, length of a sequence, sequences of a batch. Optional are the dtype,
`float16` or `float32`, and the activation. `gelu` is the IPU's op, as in PopRT's benchmarks. `erf` is as in its
examples: ops in float32, and a product each for queries, keys and values. A run takes 64 batches.
"""

from __future__ import annotations

import sys
from typing import Any

import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu

from benchmarks.published import common
from benchmarks.published.bert import Attention, Places, norm

WORDS = 30522
BATCHES = 64
layers = keras.layers


def gelu_of_ops(x: Any) -> Any:
    """PopRT's example excludes GELU from float16, and its compiler makes no single call of the ops.

    The formula is written out: TensorFlow's compiler for IPUs would make one call of `tf.nn.gelu`.
    """
    x32 = tf.cast(x, tf.float32)
    return tf.cast(0.5 * (x32 + x32 * tf.math.erf(x32 / 2.0**0.5)), x.dtype)


def encoder(x: Any, width: int, heads: int, activation: Any) -> Any:
    products = 3 if activation is gelu_of_ops else 1
    x = norm(x + layers.Dense(width)(Attention(heads, products)(x)))
    return norm(x + layers.Dense(width)(layers.Dense(4 * width, activation=activation)(x)))


def main(count: int, width: int, heads: int, places: int, batch: int, dtype: str, activation: str) -> None:
    with common.strategy(1, "0.4", dtype=dtype).scope():
        words = keras.Input((places,), batch, dtype="int32")
        kinds = keras.Input((places,), batch, dtype="int32")
        x = layers.Embedding(WORDS, width)(words) + layers.Embedding(2, width)(kinds)
        x = norm(Places()(x))
        for _ in range(count):
            x = encoder(x, width, heads, ipu.nn_ops.gelu if activation == "gelu" else gelu_of_ops)
        model = keras.Model([words, kinds], layers.Dense(2)(x))
        zeros = tf.zeros([places], tf.int32)
        common.predict(model, ((zeros, zeros),), batch, BATCHES)


if __name__ == "__main__":
    given = [*sys.argv[1:], *("float16", "erf")[len(sys.argv) - 6 :]]
    main(*map(int, given[:5]), given[5], given[6])
