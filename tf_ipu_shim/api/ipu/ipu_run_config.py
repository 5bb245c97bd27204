"""`tensorflow.python.ipu.ipu_run_config`: IPU configuration of an estimator. Needs TensorFlow 2.15 or older."""

from tf_ipu_shim.legacy.estimators.run_config import IPURunConfig, RunConfig

__all__ = ["IPURunConfig", "RunConfig"]
