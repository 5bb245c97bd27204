"""Gradient tapes that keep gradients on the shard of their forward op.

Wraps the function that TensorFlow's tape calls for each op (`backprop._gradient_function`, registered through
`TFE_Py_RegisterGradientFunction`); checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from typing import Any

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, context

from tf_ipu_shim.lowering import marks, tracing

_enabled = False


def enable() -> None:
    """Wraps TensorFlow's function, once a process."""
    global _enabled
    if not _enabled:
        pywrap_tfe.TFE_Py_RegisterGradientFunction(_gradient_function)
        _enabled = True


def _gradient_function(op_name: Any, attr_tuple: Any, num_inputs: Any, inputs: Any, outputs: Any, *rest: Any) -> Any:
    arguments = (op_name, attr_tuple, num_inputs, inputs, outputs, *rest)
    if not context.executing_eagerly():
        for tensor in outputs or ():  # None where the gradient needs no output
            mark = _mark_of(tensor)
            if mark is not None:
                with tracing.attributes({marks.SHARDING_ATTRIBUTE: mark}):
                    return backprop._gradient_function(*arguments)
    return backprop._gradient_function(*arguments)


def _mark_of(tensor: Any) -> Any:
    op = getattr(tensor, "op", None) if hasattr(tensor, "graph") else None
    if op is None or marks.SHARDING_ATTRIBUTE not in op.node_def.attr:
        return None
    return op.node_def.attr[marks.SHARDING_ATTRIBUTE]
