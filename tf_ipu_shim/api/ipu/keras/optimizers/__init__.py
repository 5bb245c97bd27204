"""`tensorflow.python.ipu.keras.optimizers` (SDK 2.1 to 3.0): accumulates or maps gradients of Keras 2 optimizers."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "gradient_accumulate_optimizer",
    {
        "automatic_loss_scaling_optimizer": "AutomaticLossScalingOptimizer",
        "cross_replica_optimizer": "CrossReplicaOptimizer",
        "gradient_accumulation_optimizer": "GradientAccumulationOptimizer",
        "ipu_wrappers": "IpuOptimizer",
        "map_gradient_optimizer": "MapGradientOptimizer MapGradientOptimizerInvertedChaining",
    },
)
