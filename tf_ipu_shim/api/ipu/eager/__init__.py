"""`tensorflow.python.ipu.eager`: gradient tapes. Its module loads when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(__name__, "backprop")
