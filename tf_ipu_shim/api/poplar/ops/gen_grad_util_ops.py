"""`gen_grad_util_ops`: tags tensors whose upstream gradients are captured."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.gradients import grad_util_ops


def capture_upstream_gradients_fwd_no_op(inputs: Any, tag: str, name: Any = None) -> Any:
    """See `grad_util_ops.capture_upstream_gradients`; accepts and returns a list."""
    with tf.name_scope(name or "CaptureUpstreamGradientsFwdNoOp"):
        return grad_util_ops.capture_upstream_gradients(list(inputs), tag)
