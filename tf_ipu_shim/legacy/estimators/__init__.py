"""`tf.estimator` on IPUs: one program loop runs the steps of a session run.

Needs `tf.estimator`, which TensorFlow has up to 2.15.
"""

from tf_ipu_shim import errors

try:
    from tf_ipu_shim.tf_private import estimators as _estimators
except ImportError as error:
    raise errors.MissingModuleError(
        "IPUEstimator needs tf.estimator, which TensorFlow only has up to 2.15. Install "
        "tensorflow-cpu 2.15.1, or train with Keras or a custom loop in the scope of an IPUStrategy.",
        name="tensorflow_estimator",
    ) from error

del _estimators
