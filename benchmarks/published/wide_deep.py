"""Wide and Deep inference: `tf-ipu fit --system c600 -m benchmarks.published.wide_deep 8000`.

Argument: items of a batch. An item is 26 pairs of int32 and 13 float16 numbers. The sizes of the tables and layers are
those of Intel's script for this data set. As in the published runs, 128 tiles are I/O tiles and a run takes 1,024
batches.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

CATEGORIES, NUMBERS, ROWS, WIDTH = 26, 13, 1000, 32
HIDDEN = (1024, 512, 256)
BATCHES = 1024
IO_TILES = 128


def configure() -> Any:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.io_tiles.num_io_tiles = IO_TILES
    config.io_tiles.place_ops_on_io_tiles = True
    config.matmuls.poplar_options = {"partialsType": "half", "availableMemoryProportion": "1.0"}
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy()


def weight(*shape: int) -> Any:
    return tf.Variable(np.zeros(shape, np.float16))


def main(batch: int) -> None:
    element = (tf.zeros([batch, NUMBERS], tf.float16), tf.zeros([batch * CATEGORIES, 2], tf.int32))
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(element).repeat())
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    strategy = configure()
    with strategy.scope():
        table, linear = weight(CATEGORIES * ROWS, WIDTH), weight(CATEGORIES * ROWS, 1)
        widths = (CATEGORIES * WIDTH + NUMBERS, *HIDDEN, 1)
        layers = [(weight(*shape), weight(shape[1])) for shape in zip(widths, widths[1:])]

        def step(numbers: Any, categories: Any) -> None:
            rows = categories[:, 0] * ROWS + categories[:, 1]
            deep = tf.reshape(tf.gather(table, rows), [batch, CATEGORIES * WIDTH])
            x = tf.concat([deep, numbers], 1)
            for place, (kernel, bias) in enumerate(layers):
                x = x @ kernel + bias
                x = tf.nn.relu(x) if place < len(HIDDEN) else x
            wide = tf.reduce_sum(tf.reshape(tf.gather(linear, rows), [batch, CATEGORIES]), 1, keepdims=True)
            outfeed.enqueue(tf.sigmoid(x + wide))

        @tf.function(jit_compile=True)
        def run() -> None:
            ipu.loops.repeat(BATCHES, step, [], infeed)

        infeed.initializer  # noqa: B018 - it starts the feed
        strategy.run(run)


if __name__ == "__main__":
    main(int(sys.argv[1]))
