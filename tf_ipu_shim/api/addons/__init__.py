"""`ipu_tensorflow_addons`: layers and optimizers for IPUs. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(__name__, ["keras", "layers", "optimizers", "v1"])
