"""A Keras LSTM with a dense layer that Adam trains: `tf-ipu fit --system m2000 -m benchmarks.published.keras_lstm 2`.

Argument: stages, 1 or 2. A run takes 32 mini-batches.
"""

from __future__ import annotations

import sys

import numpy as np
from tensorflow import keras
from tensorflow.python import ipu

from benchmarks.published import common

WIDTH, RESULTS, STEPS, NUMBERS, BATCH, ACCUMULATED = 64, 8, 20, 16, 16, 16


def main(stages: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = stages
    config.configure_ipu_system()
    with ipu.ipu_strategy.IPUStrategy().scope():
        layers = [keras.layers.LSTM(WIDTH), keras.layers.Dense(RESULTS)]
        model = keras.Sequential([keras.Input((STEPS, NUMBERS)), *layers])
        if stages > 1:
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=ACCUMULATED)
            model.set_pipeline_stage_assignment([0, 1])
        steps = 2 * ACCUMULATED
        model.compile(keras.optimizers.legacy.Adam(), "mse", steps_per_execution=steps)
        common.train(model, np.zeros([STEPS, NUMBERS], np.float32), np.zeros(RESULTS, np.float32), BATCH, steps)


if __name__ == "__main__":
    main(int(sys.argv[1]))
