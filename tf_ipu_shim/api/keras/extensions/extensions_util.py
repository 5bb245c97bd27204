"""`keras.ipu.extensions.extensions_util`: reshapes dequeued outfeed results."""

from tf_ipu_shim.frontend.keras.training.extensions_util import merge_into_batch_dimension

__all__ = [
    "merge_into_batch_dimension",
]
