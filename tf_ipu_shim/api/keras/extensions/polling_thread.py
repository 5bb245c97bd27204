"""`keras.ipu.extensions.polling_thread`: calls callbacks for mini-batches as they come out of a running program."""

from tf_ipu_shim.frontend.keras.training.polling_thread import PollingThread, PollingThreadPredict

__all__ = [
    "PollingThread",
    "PollingThreadPredict",
]
