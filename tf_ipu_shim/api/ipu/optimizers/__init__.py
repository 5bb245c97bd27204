"""`tensorflow.python.ipu.optimizers`: adds accumulation, reduction and loss scaling to TensorFlow 1 optimizers."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "",
    {
        "automatic_loss_scaling_optimizer": "AutomaticLossScalingOptimizer",
        "cross_replica_optimizer": "CrossReplicaOptimizer",
        "gradient_accumulation_optimizer": (
            "CrossReplicaGradientAccumulationOptimizer CrossReplicaGradientAccumulationOptimizerV2 "
            "GradientAccumulationOptimizer GradientAccumulationOptimizerV2 GradientAccumulationReductionMethod"
        ),
        "ipu_optimizer": "IpuOptimizer",
        "map_gradient_optimizer": "MapGradientOptimizer",
        "sharded_optimizer": "ShardedOptimizer",
    },
)
