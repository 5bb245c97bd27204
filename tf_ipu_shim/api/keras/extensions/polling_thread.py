"""`keras.ipu.extensions.polling_thread`: calls callbacks with results while the program is still running."""

from tf_ipu_shim.frontend.keras.training.polling_thread import PollingThread, PollingThreadPredict

__all__ = [
    "PollingThread",
    "PollingThreadPredict",
]
