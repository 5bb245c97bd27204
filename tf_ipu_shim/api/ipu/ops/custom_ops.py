"""`tensorflow.python.ipu.ops.custom_ops`: ops of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.names.refused import refused


def codelet_expression_op(vertex_expression: Callable[..., Any], *args: Any) -> tf.Tensor:
    """Computes an expression element by element, which Graphcore's TensorFlow makes a codelet of.

    Here TensorFlow ops compute it, fused by XLA. Like the codelet's, the result has no gradient.

    Args:
        vertex_expression: takes as many values as there are tensors, and combines them with operators and the functions
            of `vertex_edsl`.
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


@refused(
    "is not emulated: it runs a library's Poplar code, and there is no Poplar in the simulated IPU. Write the op with "
    "TensorFlow ops, with tf.custom_gradient for its gradient, or run it on the host in "
    "`scopes.outside_compilation_scope` with tf.py_function."
)
def precompiled_user_op(
    inputs: Any,
    library_path: str,
    gp_path: str = "",
    outs: Any = None,
    name: str = "UserOp",
    op_name: str = "Build",
    separate_gradients: bool = False,
    inputs_with_gradients: Any = None,
    attributes: str | None = None,
    gradient_attributes: str | None = None,
) -> None:
    """An op made by a shared library with Poplar: refused, since there is no Poplar here to run it.

    Args:
        inputs: tensors.
        library_path: of the shared library.
        gp_path: of its codelets.
        outs: types and shapes of the outputs.
        name: of the op.
        op_name: prefix of the library's functions.
        separate_gradients: whether each gradient has its own op.
        inputs_with_gradients: which inputs have gradients.
        attributes: handed to the library.
        gradient_attributes: the same for gradients.

    Raises:
        ValueError: attributes are no string.
        UnsupportedError: otherwise.

    Source: `tensorflow.python.ipu.ops.custom_ops.precompiled_user_op`.
    """
    _check_attributes(attributes, gradient_attributes)


@refused(
    "is not emulated: it calls a library that is built against Poplar, and there is no Poplar in the simulated IPU. "
    "Call the code from Python instead: tf.py_function in `scopes.outside_compilation_scope`."
)
def cpu_user_operation(
    inputs: Any,
    library_path: str,
    outs: Any = None,
    name: str = "UserOp",
    op_name: str = "Callback",
    separate_gradients: bool = False,
    inputs_with_gradients: Any = None,
    attributes: str | None = None,
    gradient_attributes: str | None = None,
) -> None:
    """An op of a shared library that Poplar calls on the host: refused, as it is built against Poplar.

    Args:
        inputs: tensors.
        library_path: of the shared library.
        outs: types and shapes of the outputs.
        name: of the op.
        op_name: prefix of the library's functions.
        separate_gradients: whether each gradient has its own op.
        inputs_with_gradients: which inputs have gradients.
        attributes: handed to the library.
        gradient_attributes: the same for gradients.

    Raises:
        ValueError: attributes are no string.
        UnsupportedError: otherwise.

    Source: `tensorflow.python.ipu.ops.custom_ops.cpu_user_operation`.
    """
    _check_attributes(attributes, gradient_attributes)


def _check_attributes(attributes: Any, gradient_attributes: Any) -> None:
    for what, value in (("attributes", attributes), ("gradient_attributes", gradient_attributes)):
        if value and not isinstance(value, str):
            raise ValueError(
                f"Expected {what} to be a 'str' type, but it is {type(value).__name__}. Serialise it, for instance "
                "with json.dumps."
            )
