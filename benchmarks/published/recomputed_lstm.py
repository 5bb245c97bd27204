"""An LSTM with recomputation checkpoints: `tf-ipu fit --system m2000 -m benchmarks.published.recomputed_lstm 7`.

Argument: how many checkpoints divide the 2,048 steps. As in Graphcore's example of checkpoints, two stages of a
Sequential pipeline share an IPU.
"""

from __future__ import annotations

import sys
from typing import Any

import tensorflow as tf
from ipu_tensorflow_addons.keras import layers as addons
from tensorflow import keras
from tensorflow.python import ipu

STEPS, INPUTS, WIDTH, BATCH = 2048, 512, 256, 16
pipelining = ipu.ops.pipelining_ops


def lstm(inputs: Any, checkpoints: int) -> Any:
    layer = addons.PopnnLSTM(WIDTH, return_state=True)
    parts, state, length = [], None, STEPS // (checkpoints + 1)
    for part in range(checkpoints + 1):
        begin = part * length
        rows = keras.layers.Lambda(lambda x, begin: x[:, begin : begin + length], arguments={"begin": begin})(inputs)
        found, *state = layer(rows, initial_state=state and tuple(state))
        if part != checkpoints:
            state = addons.RecomputationCheckpoint()(state)
        parts.append(found)
    return keras.layers.Concatenate(axis=1)(parts)


def main(checkpoints: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.allow_recompute = True
    config.configure_ipu_system()
    with ipu.ipu_strategy.IPUStrategy().scope():
        inputs = keras.Input((STEPS, INPUTS), BATCH)
        with keras.ipu.PipelineStage(0):
            x = lstm(inputs, checkpoints)
        with keras.ipu.PipelineStage(1):
            model = keras.Model(inputs, keras.layers.Dense(1)(x))
        model.compile(keras.optimizers.legacy.SGD(0.001), "mse", steps_per_execution=4)
        model.set_pipelining_options(
            4,
            pipeline_schedule=pipelining.PipelineSchedule.Sequential,
            device_mapping=[0, 0],
            recomputation_mode=pipelining.RecomputationMode.RecomputeAndBackpropagateInterleaved,
        )
        model.set_infeed_queue_options(prefetch_depth=1)
        data = tf.data.Dataset.from_tensors((tf.ones([STEPS, INPUTS]), tf.ones([STEPS])))
        model.fit(data.repeat(64).batch(BATCH, drop_remainder=True), verbose=0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
