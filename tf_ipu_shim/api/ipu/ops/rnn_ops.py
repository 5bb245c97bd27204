"""`tensorflow.python.ipu.ops.rnn_ops`: the older name of `ipu_tensorflow_addons.layers.rnn_ops`."""

from tf_ipu_shim.api.addons.layers.rnn_ops import *  # noqa: F403
from tf_ipu_shim.api.addons.layers.rnn_ops import __all__  # noqa: F401
