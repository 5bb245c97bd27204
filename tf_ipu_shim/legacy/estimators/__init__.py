"""`tf.estimator` on IPUs: one program loop runs the steps of a session run.

run_config    an estimator's IPU settings
specs         the checked result of a model function
feeds         one queue each way, started and freed with the session
loops         a model function as the body of a loop on the IPU
graphs        the ops of such a body, seen from the graph around it
metrics       metrics of an evaluation, on the IPU or the host, in TensorFlow's form
step_hooks    hooks that count the steps of loops
workers       training by several workers: input, loss, checkpoints
base          the parts that both estimators share
estimator     `IPUEstimator`
pipelines     `IPUPipelineEstimator`

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
