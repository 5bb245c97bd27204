"""`tensorflow.python.ipu.keras.extensions.keras_polling_thread` of SDK 2.5 to 3.0."""

from tf_ipu_shim.frontend.keras.training.polling_thread import PollingThread, PollingThreadPredict

__all__ = ["PollingThread", "PollingThreadPredict"]
