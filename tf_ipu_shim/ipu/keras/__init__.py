"""`tensorflow.python.ipu.keras`: Keras for IPUs before there was `keras.ipu`. Its modules load when asked for."""

from tf_ipu_shim.lazy_modules import lazy

__getattr__, __dir__ = lazy(__name__, ["extensions", "layers", "losses", "optimizers"])
