"""Gradients that stay on the shard of their forward op, of gradient tapes and of `tf.gradients`.

For tapes it wraps the functions that TensorFlow's tape calls for each op: `execute.record_gradient` when the op is
made, and `backprop._gradient_function`, registered through `TFE_Py_RegisterGradientFunction`, when its gradient is. The
second is not told of the op, and is given the op's outputs only if the gradient needs them; so the first hands the mark
on among the op's attributes. `tf.gradients` tells `gradients_util._MaybeCompile` of each op. Checked on TensorFlow
2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, context, execute
from tensorflow.python.ops import gradients_util

from tf_ipu_shim import patches
from tf_ipu_shim.building import tracing
from tf_ipu_shim.lowering import vocabulary

_WHY = "gradients are marked for the shard of their forward op"


def enable() -> None:
    """Wraps TensorFlow's functions, once a process."""
    patches.replace(execute, "record_gradient", _recording, why=_WHY)
    patches.replace(gradients_util, "_MaybeCompile", _with_mark, why=_WHY)
    patches.change(
        "tensorflow.python.pywrap_tfe.TFE_Py_RegisterGradientFunction",
        lambda: pywrap_tfe.TFE_Py_RegisterGradientFunction(_gradient_function),
        lambda: pywrap_tfe.TFE_Py_RegisterGradientFunction(backprop._gradient_function),
        why=_WHY,
        undone="TensorFlow's own function is registered again",
    )


def _with_mark(stock: Callable[..., Any]) -> Callable[..., Any]:
    def maybe_compile(scope: Any, op: Any, *arguments: Any) -> Any:
        mark = _mark_of(op.outputs[0]) if op.outputs else None
        if mark is None:
            return stock(scope, op, *arguments)
        with tracing.attributes({vocabulary.SHARDING_ATTRIBUTE: mark}):
            return stock(scope, op, *arguments)

    return maybe_compile


def _recording(stock: Callable[..., Any]) -> Callable[..., Any]:
    def record_gradient(op_name: Any, inputs: Any, attrs: Any, outputs: Any) -> Any:
        mark = _mark_of(outputs[0]) if outputs and not context.executing_eagerly() else None
        if mark is not None:
            attrs = (*(attrs or ()), vocabulary.SHARDING_ATTRIBUTE, mark)
        return stock(op_name, inputs, attrs, outputs)

    return record_gradient


def _gradient_function(
    op_name: Any, attr_tuple: Any, num_inputs: Any, inputs: Any, outputs: Any, *arguments: Any
) -> Any:
    # `runtime/shown_errors` finds the op of which there is no gradient in `outputs`.
    arguments = (num_inputs, inputs, outputs, *arguments)
    if attr_tuple and len(attr_tuple) > 1 and attr_tuple[-2] == vocabulary.SHARDING_ATTRIBUTE:
        with tracing.attributes({vocabulary.SHARDING_ATTRIBUTE: attr_tuple[-1]}):
            return backprop._gradient_function(op_name, attr_tuple[:-2], *arguments)
    return backprop._gradient_function(op_name, attr_tuple, *arguments)


def _mark_of(tensor: Any) -> Any:
    op = getattr(tensor, "op", None) if hasattr(tensor, "graph") else None
    if op is None or vocabulary.SHARDING_ATTRIBUTE not in op.node_def.attr:
        return None
    return op.node_def.attr[vocabulary.SHARDING_ATTRIBUTE]
