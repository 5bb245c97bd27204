"""`gen_ipu_ops`: configures and queries the driver from a graph. Its ops run on the CPU.

Example:
    >>> from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops
    >>> with tf.device("cpu"):
    ...     events = gen_ipu_ops.ipu_event_trace()
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim.api.op_modules import wrappers


def _expecting_recompilation(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Says that programs will be compiled again: the op clears caches of TensorFlow's, not those of `devices`."""

    @functools.wraps(wrapper)
    def expecting(*args: Any, **kwargs: Any) -> Any:
        from tf_ipu_shim.runtime import devices

        devices.expect_recompilation()
        return wrapper(*args, **kwargs)

    return expecting


__getattr__, __dir__ = wrappers(
    __name__,
    "ipu_clear_all_xla_compilation_caches ipu_configure_hardware ipu_event_trace ipu_get_configuration "
    "ipu_get_num_devices ipu_model_used ipu_reset_devices ipu_reset_seed ipu_use_synthetic_data_for",
    ipu_clear_all_xla_compilation_caches=_expecting_recompilation,
)
