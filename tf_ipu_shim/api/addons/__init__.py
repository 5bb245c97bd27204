"""`ipu_tensorflow_addons`: layers and optimizers for IPUs, and the SavedModel tool. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(__name__, "keras layers optimizers saved_model_tool v1")
