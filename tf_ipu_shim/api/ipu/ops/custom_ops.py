"""`tensorflow.python.ipu.ops.custom_ops`: ops that users write in C++, as expressions, or as host functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops.user_ops.codelet_emulations import register_emulation
from tf_ipu_shim.frontend.ops.user_ops.host_callbacks import cpu_user_operation
from tf_ipu_shim.frontend.ops.user_ops.poplar_ops import precompiled_user_op

__all__ = ["codelet_expression_op", "cpu_user_operation", "precompiled_user_op", "register_emulation"]


def codelet_expression_op(vertex_expression: Callable[..., Any], *args: Any) -> tf.Tensor:
    """Computes an expression element by element, which Graphcore's TensorFlow makes a codelet of.

    Here XLA fuses the TensorFlow ops that compute it. Like the codelet's, the result has no gradient.

    Args:
        vertex_expression: accepts as many values as there are tensors, and combines them with operators and the
            functions of `vertex_edsl`.
        *args: tensors of one shape and type.

    Returns:
        A tensor of the shape and type of the arguments.

    Source: `tensorflow.python.ipu.ops.custom_ops.codelet_expression_op`.

    Example:
        >>> x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
        >>> codelet_expression_op(lambda x, y: x * y + 1.0, x, y).numpy().tolist()
        [4.0, 9.0]
    """
    tensors = [tf.convert_to_tensor(value) for value in args]
    with tf.name_scope("codelet_expression_op"):
        result = tf.convert_to_tensor(vertex_expression(*tensors))
        return tf.stop_gradient(tf.cast(result, tensors[0].dtype) if tensors else result)
