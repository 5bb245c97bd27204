"""`tensorflow.python.ipu.ipu_pipeline_estimator`: pipelines as estimators. Needs TensorFlow 2.15 or older."""

from tf_ipu_shim.legacy.estimators.pipelines import IPUPipelineEstimator, IPUPipelineEstimatorSpec

__all__ = ["IPUPipelineEstimator", "IPUPipelineEstimatorSpec"]
