"""`tensorflow.python.ipu.ops.grad_util_ops`: tags tensors whose upstream gradients are captured."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.gradients import backprop
from tf_ipu_shim.tf_private.eager import custom_gradient
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops


def capture_upstream_gradients(args: Any, tag: str = "") -> Any:
    """Returns the values unchanged, and captures their gradients.

    Args:
        args: a tensor, or a list or tuple of tensors.
        tag: the name under which an `eager.backprop.GradientCaptureTape` or `GradientCaptureContext` stores the
            gradients.

    Returns:
        The same values, in the same structure.

    Raises:
        RuntimeError: when gradients of the values are computed in the context of neither. Values without gradients need
            none.

    Source: `tensorflow.python.ipu.ops.grad_util_ops.capture_upstream_gradients`.

    Example:
        >>> weight = tf.Variable(3.0)
        >>> with ipu.eager.backprop.GradientCaptureTape() as tape:
        ...     hidden = capture_upstream_gradients(2.0 * weight, tag="hidden")
        ...     loss = hidden ** 2
        >>> float(tape.gradient(loss, weight)), float(tape.captured_gradients["hidden"])
        (24.0, 12.0)
    """
    several = isinstance(args, (list, tuple))
    values = [ops.convert_to_tensor(value) for value in (args if several else [args])]

    around = backprop.active_contexts()

    @custom_gradient.custom_gradient
    def marked(*inputs: Any) -> Any:
        def gradient(*upstream: Any) -> Any:
            backprop.capture_gradient(tag, list(upstream) if several else upstream[0], around)
            return list(upstream) if len(upstream) > 1 else upstream[0]

        return [array_ops.identity(value) for value in inputs], gradient

    outputs = marked(*values)
    if not several:
        return outputs[0] if isinstance(outputs, (list, tuple)) else outputs
    return type(args)(outputs if isinstance(outputs, (list, tuple)) else [outputs])
