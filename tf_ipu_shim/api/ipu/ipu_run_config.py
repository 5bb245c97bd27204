"""`tensorflow.python.ipu.ipu_run_config`: what an estimator is told of the IPUs. Needs TensorFlow 2.15 or older."""

from tf_ipu_shim.legacy.estimators.run_config import IPURunConfig, RunConfig

__all__ = ["IPURunConfig", "RunConfig"]
