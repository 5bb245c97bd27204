"""`tensorflow.python.ipu.ipu_estimator`: `tf.estimator` on IPUs. Needs TensorFlow 2.15 or older."""

from tf_ipu_shim.frontend.sharding.scopes import ipu_scope
from tf_ipu_shim.legacy.estimators.estimator import IPUEstimator
from tf_ipu_shim.legacy.estimators.specs import IPUEstimatorSpec

__all__ = ["IPUEstimator", "IPUEstimatorSpec", "ipu_scope"]
