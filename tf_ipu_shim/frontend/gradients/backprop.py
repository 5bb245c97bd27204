"""`tensorflow.python.ipu.eager.backprop`: gradient tapes that also capture gradients of intermediate tensors."""

from __future__ import annotations

import threading
from typing import Any

from tensorflow.compat.v2 import UnconnectedGradients

from tf_ipu_shim.tf_private.eager import backprop


class _ActiveContexts(threading.local):
    """A thread's contexts that capture gradients, innermost last."""

    def __init__(self) -> None:
        self.contexts: list[GradientCaptureContext] = []


_active = _ActiveContexts()


class GradientCaptureContext:
    """While active, keeps the gradients that pass `grad_util_ops.capture_upstream_gradients`.

    For gradients that are not computed by a tape, but for example by an optimizer's `compute_gradients`.

    Source: `tensorflow.python.ipu.eager.backprop.GradientCaptureContext`.

    Example:
        >>> x = tf.constant(3.0)
        >>> def step():
        ...     with GradientCaptureContext() as context:
        ...         hidden = ipu.ops.grad_util_ops.capture_upstream_gradients(2.0 * x, tag="hidden")
        ...         gradients = tf.gradients(hidden**2, x)
        ...     return context.captured_gradients["hidden"]
        >>> float(tf.function(step)())  # of hidden squared, where hidden is 6
        12.0
    """

    def __init__(self) -> None:
        self._captured: dict[str, Any] = {}

    def __enter__(self) -> GradientCaptureContext:
        _active.contexts.append(self)
        return self

    def __exit__(self, typ: Any, value: Any, traceback: Any) -> None:
        _active.contexts.remove(self)

    @property
    def is_entered(self) -> bool:
        """Returns whether gradients are captured for it now, in this thread."""
        return any(context is self for context in _active.contexts)

    @property
    def captured_gradients(self) -> dict[str, Any]:
        """The gradients by tag. If several values have one tag, a number is added from the second value on: `tag_1`."""
        return self._captured

    @captured_gradients.setter
    def captured_gradients(self, value: Any) -> None:
        raise ValueError("captured_gradients is read only. Mark values with grad_util_ops.capture_upstream_gradients.")


class GradientCaptureTape(backprop.GradientTape, GradientCaptureContext):
    """A gradient tape that keeps the gradients of values marked with `grad_util_ops.capture_upstream_gradients`.

    Args:
        persistent: whether `gradient` may be called several times.
        watch_accessed_variables: whether trainable variables are watched without being asked to.

    Source: `tensorflow.python.ipu.eager.backprop.GradientCaptureTape`.

    Example:
        >>> weight = tf.Variable(3.0)
        >>> with GradientCaptureTape() as tape:
        ...     hidden = ipu.ops.grad_util_ops.capture_upstream_gradients(2.0 * weight, tag="hidden")
        ...     loss = hidden ** 2
        >>> float(tape.gradient(loss, weight)), float(tape.captured_gradients["hidden"])
        (24.0, 12.0)
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        backprop.GradientTape.__init__(self, persistent, watch_accessed_variables)
        GradientCaptureContext.__init__(self)

    def __enter__(self) -> GradientCaptureTape:
        backprop.GradientTape.__enter__(self)
        GradientCaptureContext.__enter__(self)
        return self

    def __exit__(self, typ: Any, value: Any, traceback: Any) -> None:
        GradientCaptureContext.__exit__(self, typ, value, traceback)
        backprop.GradientTape.__exit__(self, typ, value, traceback)

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Returns the gradients of a target, and keeps marked values' gradients in `captured_gradients`.

        Args:
            target: a structure of tensors or variables.
            sources: a structure of tensors or variables.
            output_gradients: a gradient for each target; ones when left out.
            unconnected_gradients: the gradient if a target does not depend on a source.

        Returns:
            A gradient for each source, in their structure.

        Source: `tensorflow.python.ipu.eager.backprop.GradientCaptureTape.gradient`.

        Example:
            >>> weight = tf.Variable(3.0)
            >>> with GradientCaptureTape() as tape:
            ...     loss = weight**2
            >>> float(tape.gradient(loss, weight))
            6.0
        """
        self._captured.clear()
        # Most scripts call this after the `with`. It may also be inside, and must be entered only once.
        if self in _active.contexts:
            return super().gradient(target, sources, output_gradients, unconnected_gradients)
        GradientCaptureContext.__enter__(self)
        try:
            return super().gradient(target, sources, output_gradients, unconnected_gradients)
        finally:
            GradientCaptureContext.__exit__(self, None, None, None)


def num_gradient_collection_tapes() -> int:
    """Returns the number of this thread's contexts and tapes that capture gradients.

    Source: `tensorflow.python.ipu.eager.backprop.num_gradient_collection_tapes`.

    Example:
        >>> num_gradient_collection_tapes()
        0
    """
    return len(_active.contexts)


def active_contexts() -> list[GradientCaptureContext]:
    """Returns the contexts of this thread that are entered now."""
    return list(_active.contexts)


def capture_gradient(tag: str, gradient: Any, around_value: list[GradientCaptureContext]) -> None:
    """Passes a gradient to all active contexts."""
    contexts = _active.contexts or around_value
    if not contexts:
        raise RuntimeError(
            "capture_upstream_gradients may only be used within the context of a GradientCaptureTape or a "
            f"GradientCaptureContext; the gradients of {tag!r} are computed in neither. Make the tape an "
            "ipu.eager.backprop.GradientCaptureTape, or enter an ipu.eager.backprop.GradientCaptureContext around what "
            "computes the gradients."
        )
    for context in contexts:
        name, suffix = tag, 0
        while name in context._captured:
            suffix += 1
            name = f"{tag}_{suffix}"
        context._captured[name] = gradient
