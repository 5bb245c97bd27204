"""`ipu_tensorflow_addons.v1.layers.rnn_ops`: the same as `ipu_tensorflow_addons.layers.rnn_ops`."""

from tf_ipu_shim.api.addons.layers.rnn_ops import *  # noqa: F403
from tf_ipu_shim.api.addons.layers.rnn_ops import __all__  # noqa: F401
