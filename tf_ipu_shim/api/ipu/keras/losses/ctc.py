"""`tensorflow.python.ipu.keras.losses.ctc`: the CTC loss of `ipu_tensorflow_addons.keras.layers.ctc`."""

from tf_ipu_shim.api.addons.keras.layers.ctc import CTCLoss

__all__ = ["CTCLoss"]
