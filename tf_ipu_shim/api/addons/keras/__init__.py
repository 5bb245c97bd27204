"""`ipu_tensorflow_addons.keras`: Keras layers and optimizers for IPUs. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(__name__, "layers optimizers")
