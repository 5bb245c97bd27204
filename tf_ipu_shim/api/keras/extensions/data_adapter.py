"""`keras.ipu.extensions.data_adapter`: the data of a call of fit, evaluate or predict as a dataset for an infeed."""

from tf_ipu_shim.frontend.keras.training.data_adapter import IPUDataHandler

__all__ = [
    "IPUDataHandler",
]
