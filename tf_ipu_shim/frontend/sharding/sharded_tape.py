"""Places gradient ops on the shard of their forward op, for gradient tapes and `tf.gradients`.

Those of an outlined function's ops are marked as well: they are a function too, which all calls share.

For tapes it wraps two functions that TensorFlow's tape calls for each op. `execute.record_gradient` is called for the
op; `backprop._gradient_function`, registered through `TFE_Py_RegisterGradientFunction`, for its gradient. The second
does not know the op, and gets the op's outputs only if the gradient needs them. So the first passes the annotation on
among the op's attributes. `tf.gradients` tells `gradients_util._MaybeCompile` of each op. Checked on TensorFlow 2.15.1
and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private import eager as tf_eager
from tf_ipu_shim.tf_private.eager import context, execute, gradients_util, pywrap_tfe
from tf_ipu_shim.tf_private.protos import attr_value_pb2

_MARKS = "_ipu_marks"  # among the attributes of an op that a tape is told of
_WHY = "gradients are marked for the shard of their forward op"


def enable_sharding() -> None:
    """Wraps TensorFlow's functions, once a process."""
    patches.replace(execute, "record_gradient", _patch_record_gradient, why=_WHY)
    patches.replace(gradients_util, "_MaybeCompile", _patch_maybe_compile, why=_WHY)
    patches.change(
        "tensorflow.python.pywrap_tfe.TFE_Py_RegisterGradientFunction",
        lambda: pywrap_tfe.TFE_Py_RegisterGradientFunction(_gradient_function),
        lambda: pywrap_tfe.TFE_Py_RegisterGradientFunction(tf_eager.gradient_function),
        why=_WHY,
        undone="TensorFlow's own function is registered again",
    )


def _patch_maybe_compile(stock: Callable[..., Any]) -> Callable[..., Any]:
    def maybe_compile(scope: Any, op: Any, *arguments: Any) -> Any:
        attributes = _gradient_attributes(op.outputs[0]) if op.outputs else {}
        if not attributes:
            return stock(scope, op, *arguments)
        with tracing.attribute_scope(attributes):
            return stock(scope, op, *arguments)

    return maybe_compile


def _patch_record_gradient(stock: Callable[..., Any]) -> Callable[..., Any]:
    def record_gradient(op_name: Any, inputs: Any, attrs: Any, outputs: Any) -> Any:
        gradient_attributes = _gradient_attributes(outputs[0]) if outputs and not context.executing_eagerly() else {}
        if gradient_attributes:
            attrs = (*(attrs or ()), _MARKS, gradient_attributes)
        return stock(op_name, inputs, attrs, outputs)

    return record_gradient


def _gradient_function(
    op_name: Any, attr_tuple: Any, num_inputs: Any, inputs: Any, outputs: Any, *arguments: Any
) -> Any:
    # `runtime/errors/error_display` finds the op of which there is no gradient in `outputs`.
    arguments = (num_inputs, inputs, outputs, *arguments)
    if attr_tuple and len(attr_tuple) > 1 and attr_tuple[-2] == _MARKS:
        with tracing.attribute_scope(attr_tuple[-1]):
            return tf_eager.gradient_function(op_name, attr_tuple[:-2], *arguments)
    return tf_eager.gradient_function(op_name, attr_tuple, *arguments)


def _gradient_attributes(tensor: Any) -> dict[str, attr_value_pb2.AttrValue]:
    """Attributes of the gradient of an op."""
    op = getattr(tensor, "op", None) if hasattr(tensor, "graph") else None
    attributes = {} if op is None else op.node_def.attr
    kept = {}
    if vocabulary.SHARDING_ATTRIBUTE in attributes:
        kept[vocabulary.SHARDING_ATTRIBUTE] = attributes[vocabulary.SHARDING_ATTRIBUTE]
    if vocabulary.OUTLINED_CALL_ATTRIBUTE in attributes:
        call = attributes[vocabulary.OUTLINED_CALL_ATTRIBUTE].s
        kept[vocabulary.OUTLINED_CALL_ATTRIBUTE] = attr_value_pb2.AttrValue(s=call + b", gradient")
    return kept
