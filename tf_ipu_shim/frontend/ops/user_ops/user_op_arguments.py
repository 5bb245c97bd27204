"""Parses the arguments of custom ops: outputs, inputs with gradients, attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf


@dataclass(frozen=True)
class UserOpCall:
    """The checked arguments of one call.

    Args:
        inputs: the op's operands.
        differentiable: indices of the inputs that have gradients, in the order in which gradient functions return them.
        attributes: text for the op, or empty.
        gradient_attributes: text for its gradient, or empty.
    """

    inputs: list[tf.Tensor]
    types: list[tf.DType]
    shapes: list[tf.TensorShape]
    differentiable: list[int]
    attributes: str
    gradient_attributes: str


def user_op_call(
    inputs: Sequence[Any],
    outs: Mapping[str, Any] | None,
    inputs_with_gradients: Sequence[int] | None,
    attributes: str | None,
    gradient_attributes: str | None,
) -> UserOpCall:
    """Checks the arguments of a call of a user's own op.

    Example:
        >>> call = user_op_call([1.0], {"output_types": [tf.float32], "output_shapes": [[]]}, None, None, None)
        >>> call.differentiable
        [0]
    """
    for argument, value in (("attributes", attributes), ("gradient_attributes", gradient_attributes)):
        if value and not isinstance(value, str):
            raise ValueError(
                f"Expected {argument} to be a 'str' type, but it is {type(value).__name__}. Serialise it, for instance "
                "with json.dumps."
            )
    if not isinstance(inputs, (list, tuple)):
        raise ValueError(
            f"Expected the inputs of a custom op as a list of tensors, got {inputs!r}. Pass a list of tensors."
        )
    types, shapes = _parse_outputs(outs)
    gradient_inputs = range(len(inputs)) if inputs_with_gradients is None else inputs_with_gradients
    for index in gradient_inputs:
        if not 0 <= index < len(inputs):
            raise ValueError(
                f"inputs_with_gradients has {index}, and the op has {len(inputs)} inputs; expected "
                "indices below that. Use indices of inputs."
            )
    return UserOpCall(
        [tf.convert_to_tensor(value) for value in inputs],
        types,
        shapes,
        list(gradient_inputs),
        attributes or "",
        gradient_attributes or "",
    )


def _parse_outputs(outs: Mapping[str, Any] | None) -> tuple[list[tf.DType], list[tf.TensorShape]]:
    if outs is None:
        return [], []
    expected = "outs must be a dictionary with the lists output_types and output_shapes, one entry for each output"
    if not isinstance(outs, Mapping) or not {"output_types", "output_shapes"} <= set(outs):
        raise ValueError(f"{expected}. Got {outs!r}. Pass such a dictionary.")
    types = [tf.as_dtype(item) for item in outs["output_types"]]
    shapes = [tf.TensorShape(item) for item in outs["output_shapes"]]
    if len(types) != len(shapes):
        raise ValueError(
            f"{expected}. Got {len(types)} types and {len(shapes)} shapes. Make them as long as each other."
        )
    return types, shapes
