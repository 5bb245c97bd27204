"""Imports modules of the Estimator package, which TensorFlow has up to 2.15."""

from __future__ import annotations

from tensorflow_estimator.python.estimator import (
    estimator,  # EstimatorV2, the base of ours
    model_fn,  # EstimatorSpec
    run_config,  # RunConfig, the base of ours
)
from tensorflow_estimator.python.estimator.mode_keys import (
    ModeKeys,  # names of modes
)

from tf_ipu_shim.tf_private.distribute import distribute_coordinator


def is_independent_worker(config: run_config.RunConfig) -> bool:
    """Returns whether a script starts each worker of a cluster itself."""
    mode = config._distribute_coordinator_mode
    return bool(mode == distribute_coordinator.CoordinatorMode.INDEPENDENT_WORKER)
