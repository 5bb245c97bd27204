"""`keras.ipu.optimizers`: adds automatic loss scaling and gradient accumulation to Keras 2 optimizers."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "optimizer_v2_wrapper parameter_unscaling_optimizer",
    {
        "adam": "ALSOptimizerAdam",
        "als_optimizer": "ALSGradientAccumulationOptimizer ALSOptimizer ALSOptimizerGradientAccumulationWrapper",
        "gradient_accumulation_optimizer": "GradientAccumulationOptimizer",
        "gradient_descent": "ALSOptimizerSGD",
        "rmsprop": "ALSOptimizerRMSProp",
    },
)
