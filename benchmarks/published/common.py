"""What the scripts share: 16-bit floats with 16-bit partial sums, and a dataset of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu


def strategy(ipus: int, proportion: str = "0.6") -> Any:
    """A strategy over so many IPUs, for models in float16; products use that part of a tile at most."""
    keras.backend.set_floatx("float16")
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.allow_recompute = True
    for options in (config.convolutions, config.matmuls):
        options.poplar_options = {"partialsType": "half", "availableMemoryProportion": proportion}
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy()


def train(model: Any, sample: np.ndarray, label: np.ndarray, batch: int, steps: int) -> None:
    """Trains for one execution.

    Args:
        model: compiled, with `steps_per_execution=steps`.
        sample: one sample.
        label: what belongs to it.
        batch: samples of a mini-batch.
        steps: mini-batches of all replicas.
    """
    data = tf.data.Dataset.from_tensors((sample, label)).repeat(batch * steps).batch(batch, drop_remainder=True)
    model.fit(data, verbose=0)
