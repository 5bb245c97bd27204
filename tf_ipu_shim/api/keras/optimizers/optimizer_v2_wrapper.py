"""`keras.ipu.optimizers.optimizer_v2_wrapper`: what Graphcore's optimizers of optimizers derive from."""

from tf_ipu_shim.frontend.keras.optimizer_v2_wrapper import _OptimizerV2Wrapper as _OptimizerV2Wrapper
