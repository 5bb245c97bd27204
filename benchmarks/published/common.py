"""Shared parts of the scripts: 16-bit floats with 16-bit partial sums, and a dataset of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu


def strategy(
    ipus: int,
    proportion: str = "0.6",
    group: int = 1,
    together: int = 10 << 20,
    dtype: str = "float16",
    io_tiles: int = 0,
) -> Any:
    """Returns a strategy over a number of IPUs, for models in float16.

    Args:
        ipus: the number of IPUs.
        proportion: the available memory proportion of matmuls and convolutions.
        group: replicas that share statistics of batch normalisation.
        together: bytes of gradients that are summed over replicas at a time.
        dtype: the dtype of the model.
        io_tiles: tiles that only copy elements from and to the host, while the others compute.
    """
    keras.backend.set_floatx(dtype)
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.allow_recompute = True
    config.optimizations.maximum_cross_replica_sum_buffer_size = together
    config.norms.experimental.distributed_batch_norm_replica_group_size = group
    if io_tiles:
        config.io_tiles.num_io_tiles = io_tiles
        config.io_tiles.place_ops_on_io_tiles = True
    for options in (config.convolutions, config.matmuls):
        options.poplar_options = {
            "partialsType": "half" if dtype == "float16" else "float",
            "availableMemoryProportion": proportion,
        }
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy()


def train(model: Any, sample: np.ndarray, label: np.ndarray, batch: int, steps: int) -> None:
    """Trains for one execution.

    Args:
        model: compiled, with `steps_per_execution=steps`.
        sample: one sample.
        label: its contents.
        batch: samples of a mini-batch.
        steps: mini-batches of all replicas.
    """
    data = tf.data.Dataset.from_tensors((sample, label)).repeat(batch * steps).batch(batch, drop_remainder=True)
    model.fit(data, verbose=0)


def predict(model: Any, sample: Any, batch: int, batches: int) -> None:
    """Predicts for one execution of `batches` batches, from copies of one sample."""
    model.compile(steps_per_execution=batches)
    data = tf.data.Dataset.from_tensors(sample).repeat(batch * batches)
    model.predict(data.batch(batch, drop_remainder=True))


def train_in_stages(
    model: Any,
    image: tuple[int, int, int],
    replicas: int,
    batch: int,
    accumulated: int,
    dtype: str = "uint8",
) -> None:
    """Trains a model of images that is cut into stages, with momentum, all stages at the same time.

    Args:
        model: a model with stages, an IPU to each.
        image: shape of an image.
        replicas: the replicas of the pipeline.
        batch: images of a mini-batch.
        accumulated: mini-batches whose gradients a replica accumulates.
        dtype: the dtype of the images.
    """
    steps = accumulated * replicas
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.legacy.SGD(1e-5, 0.9), loss, steps_per_execution=steps)
    model.set_pipelining_options(
        accumulated,
        gradient_accumulation_reduction_method="mean",
        pipeline_schedule=ipu.ops.pipelining_ops.PipelineSchedule.Grouped,
        offload_weight_update_variables=False,
    )
    train(model, np.zeros(image, np.dtype(dtype)), np.int32(1), batch, steps)
