"""`tensorflow.python.ipu.ipu_estimator`: `tf.estimator` on IPUs. Needs TensorFlow 2.15 or older."""

from tf_ipu_shim.building.estimators.estimator import IPUEstimator
from tf_ipu_shim.building.estimators.specs import IPUEstimatorSpec
from tf_ipu_shim.building.scopes import ipu_scope

__all__ = ["IPUEstimator", "IPUEstimatorSpec", "ipu_scope"]
