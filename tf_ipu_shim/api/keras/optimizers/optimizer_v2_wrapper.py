"""`keras.ipu.optimizers.optimizer_v2_wrapper`: the base class of optimizers that wrap another optimizer."""

from tf_ipu_shim.frontend.keras.optimizer_v2_wrapper import _OptimizerV2Wrapper as _OptimizerV2Wrapper
