"""`keras.ipu.extensions.data_adapter`: turns the data of fit, evaluate or predict into a dataset for an infeed."""

from tf_ipu_shim.frontend.keras.training.data_adapter import IPUDataHandler

__all__ = [
    "IPUDataHandler",
]
