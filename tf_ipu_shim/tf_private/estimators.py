"""Estimator's package, which TensorFlow has up to 2.15."""

from __future__ import annotations

from tensorflow_estimator.python.estimator import (
    estimator,  # EstimatorV2, the base of ours
    model_fn,  # EstimatorSpec
    run_config,  # RunConfig, the base of ours
)
from tensorflow_estimator.python.estimator.mode_keys import (
    ModeKeys,  # names of modes
)
