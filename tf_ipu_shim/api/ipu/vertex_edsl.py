"""`tensorflow.python.ipu.vertex_edsl`: builds element-wise expressions for `custom_ops.codelet_expression_op`.

Graphcore builds an expression tree here and generates a codelet's C++ from it. Codelets are not compiled here: an
expression is computed by TensorFlow ops on the inputs themselves, so the functions below accept and return tensors. The
classes of the expression tree are refused by name; write the expression with operators and these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf


def condition(pred: Any, a: Any, b: Any) -> Any:
    """Element by element, one expression or the other.

    Args:
        pred: the value that decides.
        a: the value if `pred` is true.
        b: the value if it is false.

    Returns:
        The expression.

    Source: `tensorflow.python.ipu.vertex_edsl.condition`.

    Example:
        >>> features = tf.constant([-1.0, 2.0])
        >>> expression = ipu.custom_ops.codelet_expression_op
        >>> expression(lambda x: condition(x > 0.0, x, 0.0), features).numpy().tolist()
        [0.0, 2.0]
    """
    return tf.where(pred, a, b)


def constant(value: float) -> Any:
    """Returns a number in an expression.

    Args:
        value: an int or a float.

    Returns:
        The expression.

    Raises:
        NotImplementedError: the value is neither.

    Source: `tensorflow.python.ipu.vertex_edsl.constant`.

    Example:
        >>> features = tf.constant([-1.0, 2.0])
        >>> ipu.custom_ops.codelet_expression_op(lambda x: x + constant(1.0), features).numpy().tolist()
        [0.0, 3.0]
    """
    if not isinstance(value, (int, float)):
        raise NotImplementedError(
            f"vertex_edsl.constant takes an int or a float, not {type(value).__name__}. Pass a Python number."
        )
    return value


def let(expr: Any, f: Callable[[Any], Any]) -> Any:
    """Computes an expression once for several uses.

    Args:
        expr: the expression.
        f: accepts it and returns an expression.

    Returns:
        The expression that `f` returns.

    Source: `tensorflow.python.ipu.vertex_edsl.let`.

    Example:
        >>> features = tf.constant([-1.0, 2.0])
        >>> ipu.custom_ops.codelet_expression_op(lambda x: let(x + 1.0, lambda y: y * y), features).numpy().tolist()
        [0.0, 9.0]
    """
    return f(expr)
