"""Small networks that Adam trains: `tf-ipu fit --system m2000 -m benchmarks.published.recurrent grus`.

The argument names a network. `rnn`, `rnns`, `lstms` and `grus` have cells of TensorFlow 1. `keras_rnn`, `keras_rnns`
and `convolutions` have layers of Keras. `loop` multiplies in a loop, `stages` has its loss on a second IPU. A run takes
100 mini-batches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow import keras
from tensorflow.python import ipu

WIDTH, MINI_BATCHES, KEPT = 128, 100, 0.75
layers = keras.layers


def of_cells(cell: type, *widths: int) -> Callable[[Any, int], Any]:
    """Returns a network of cells with dropout behind each, whose last state goes into a dense layer."""

    def network(x: Any, outputs: int) -> Any:
        cells = [tf.nn.rnn_cell.DropoutWrapper(cell(width), output_keep_prob=KEPT) for width in widths]
        _, states = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), x, dtype=x.dtype)
        return layers.Dense(outputs)(getattr(states[-1], "h", states[-1]))

    return network


def of_layers(*widths: int) -> Callable[[Any, int], Any]:
    """Returns a network of Keras' recurrent layers with dropout behind each."""

    def network(x: Any, outputs: int) -> Any:
        for width in widths[:-1]:
            x = layers.Dropout(1 - KEPT)(layers.SimpleRNN(width, return_sequences=True)(x))
        return layers.Dense(outputs)(layers.Dropout(1 - KEPT)(layers.SimpleRNN(widths[-1])(x)))

    return network


def convolutions(x: Any, outputs: int) -> Any:
    for stride in (1, 2):
        x = layers.MaxPooling1D(2, stride)(layers.Conv1D(WIDTH, 4)(x))
    x = layers.Conv1D(WIDTH, 4)(layers.Conv1D(WIDTH, 4)(x))
    return layers.Dense(outputs)(layers.Flatten()(x))


def loop(x: Any, outputs: int) -> Any:
    """Multiplies the steps by a variable, one after another, and sums them."""
    steps = tf.transpose(x, [1, 0, 2])
    rest = steps.shape[1:]
    factor = tf.get_variable("factor", [], initializer=tf.ones_initializer())
    products = tf.TensorArray(x.dtype, steps.shape[0], element_shape=rest)
    _, products = tf.while_loop(
        lambda step, _: step < steps.shape[0],
        lambda step, products: (
            step + 1,
            products.write(step, tf.squeeze(tf.slice(steps, [step, 0, 0], [1, *rest]), 0) * factor),
        ),
        [0, products],
        maximum_iterations=steps.shape[0],
    )
    return tf.reduce_sum(products.stack(), 0)


cells = tf.nn.rnn_cell
NETWORKS: dict[str, tuple[Callable[[Any, int], Any], int, int, int]] = {
    "rnn": (of_cells(cells.BasicRNNCell, 2 * WIDTH), 2, 5, 16),
    "rnns": (of_cells(cells.BasicRNNCell, WIDTH, WIDTH), 2, 5, 16),
    "lstms": (of_cells(cells.LSTMCell, WIDTH, 3 * WIDTH), 2, 3, 16),
    "grus": (of_cells(cells.GRUCell, 2 * WIDTH, WIDTH), 2, 5, 16),
    "keras_rnn": (of_layers(2 * WIDTH), 2, 5, 16),
    "keras_rnns": (of_layers(2 * WIDTH, WIDTH), 2, 5, 16),
    "convolutions": (convolutions, 1, 32, 16),
    "loop": (loop, 4, 32, 4056),
    "stages": (loop, 2, 5, 16),
}
"""Network, samples of a mini-batch, steps of a sample, numbers of a step and of a label."""


def repeated(network: Callable[[Any, int], Any], infeed: Any) -> Any:
    """Trains a network on one IPU."""

    def step(inputs: Any, labels: Any) -> Any:
        loss = tf.losses.mean_squared_error(labels, network(inputs, labels.shape[1]))
        return tf.train.AdamOptimizer(0.01, epsilon=1e-3).minimize(loss)

    return ipu.loops.repeat(MINI_BATCHES, step, [], infeed)


def pipelined(network: Callable[[Any, int], Any], infeed: Any) -> Any:
    """Trains a network on an IPU, with its loss on another one, by one update."""

    def first(inputs: Any, labels: Any) -> Any:
        return network(inputs, labels.shape[1]), labels

    def update(loss: Any) -> Any:
        optimizer = tf.train.AdamOptimizer(0.01, epsilon=1e-3)
        return ipu.pipelining_ops.OptimizerFunctionOutput(optimizer, loss)

    return ipu.pipelining_ops.pipeline(
        [first, lambda found, labels: tf.losses.mean_squared_error(labels, found)],
        MINI_BATCHES,
        infeed_queue=infeed,
        outfeed_queue=ipu.ipu_outfeed_queue.IPUOutfeedQueue(),
        optimizer_function=update,
    )


def main(name: str) -> None:
    network, batch, steps, width = NETWORKS[name]
    tf.disable_v2_behavior()
    tf.disable_eager_execution()
    element = (np.zeros([batch, steps, width], np.float32), np.zeros([batch, width], np.float32))
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(element).repeat())
    training = pipelined if name == "stages" else repeated
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        compiled = ipu.ipu_compiler.compile(lambda: training(network, infeed))
    ipu.utils.move_variable_initialization_to_cpu()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2 if name == "stages" else 1
    config.configure_ipu_system()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(infeed.initializer)
        session.run(compiled)


if __name__ == "__main__":
    main(sys.argv[1])
