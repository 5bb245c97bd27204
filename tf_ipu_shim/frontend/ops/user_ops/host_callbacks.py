"""Calls a host function of a user's shared library as an op."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import errors, plugin
from tf_ipu_shim.frontend.ops.user_ops.user_op_arguments import user_op_call
from tf_ipu_shim.frontend.tracing import host_ops
from tf_ipu_shim.tf_private.graphs import ops

_OP = "IpuUserReadWriteOp"


def cpu_user_operation(
    inputs: Sequence[Any],
    library_path: str,
    outs: Mapping[str, Any] | None = None,
    name: str = "UserOp",
    op_name: str = "Callback",
    separate_gradients: bool = False,
    inputs_with_gradients: Sequence[int] | None = None,
    attributes: str | None = None,
    gradient_attributes: str | None = None,
) -> list[tf.Tensor]:
    """Calls a function of a shared library on the host, anywhere in a program.

    The library has an `extern "C"` function with Graphcore's signature, and needs no Poplar for it:

    ```
    extern "C" { int32_t custom_op_api_level = 5; }
    extern "C" void Callback(const std::vector<const void*>& data,
                             const std::vector<std::uint32_t>& number_of_elements,
                             const std::vector<void*>& outputs,
                             const std::string& attributes, const std::string& name);
    ```

    A gradient is the function of that name with `_grad` behind it. Its `data` are the gradients of the outputs, the
    inputs and the outputs of the op, in this order. Its outputs are the gradients of the inputs that have one. Calls of
    one library are serialised over all threads and replicas.

    Args:
        inputs: tensors.
        library_path: the path of the shared library.
        outs: `output_types` and `output_shapes`, a list each; shapes are known in full. None for no outputs.
        name: the name of the op.
        op_name: the name of the function.
        separate_gradients: one call for each input's gradient; refused when a gradient is asked for.
        inputs_with_gradients: indices of the inputs that have gradients; None for all.
        attributes: text for the function.
        gradient_attributes: text for the gradient's function.

    Returns:
        A tensor for each output.

    Raises:
        ValueError: an argument has the wrong type or value.
        NotFoundError: when it runs, if the library or the function in it does not exist.
        InternalError: when it runs, if the API level of the library does not exist, or it threw an exception.
        UnsupportedError: a gradient is asked for with `separate_gradients`.

    Source: `tensorflow.python.ipu.ops.custom_ops.cpu_user_operation`.

    Example:
        >>> outputs = {"output_types": [tf.float32], "output_shapes": [[3]]}
        >>> def step(x):
        ...     return cpu_user_operation([x], "./libdouble.so", outs=outputs)
    """
    call = user_op_call(inputs, outs, inputs_with_gradients, attributes, gradient_attributes)
    return _callback_signature(
        call.inputs,
        call.types,
        call.shapes,
        name=name,
        library_path=os.fspath(library_path),
        op_name=op_name,
        separate_gradients=separate_gradients,
        gradient_size=0,
        inputs_with_gradients=call.differentiable,
        attributes=call.attributes,
        gradient_attributes=call.gradient_attributes,
    )


def _callback_signature(
    inputs: Sequence[Any], types: Sequence[Any], shapes: Sequence[Any], **arguments: Any
) -> list[tf.Tensor]:
    run = plugin.load().ops.ipu_user_read_write_op
    with host_ops.host_placement("cpu_user_operation"):
        results = run(input=inputs, output_types=types, output_shapes=shapes, **arguments)
    return list(results) if types else []


@ops.RegisterGradient(_OP)
def _call_gradient(op: Any, *upstream: Any) -> list[Any]:
    """Calls the library's gradient function; the gradient is None for integers and inputs without one."""
    indices = list(op.get_attr("inputs_with_gradients"))
    path, function = op.get_attr("library_path").decode(), op.get_attr("op_name").decode()
    if op.get_attr("separate_gradients"):
        raise errors.UnsupportedError(
            f"cpu_user_operation with separate_gradients=True has no gradient here: {function}_grad of {path} is not "
            "told which input's gradient it is called for. Leave separate_gradients out, and fill in all of them."
        )
    gradients = [
        tf.zeros(output.shape, output.dtype) if tensor is None else tensor
        for tensor, output in zip(upstream, op.outputs, strict=True)
    ]
    inputs = [op.inputs[index] for index in indices]
    results = _callback_signature(
        [*gradients, *op.inputs, *op.outputs],
        [tensor.dtype for tensor in inputs],
        [tensor.shape for tensor in inputs],
        name="UserOpGradient",
        library_path=path,
        op_name=function,
        separate_gradients=False,
        gradient_size=len(op.outputs),
        inputs_with_gradients=indices,
        attributes=op.get_attr("attributes").decode(),
        gradient_attributes=op.get_attr("gradient_attributes").decode(),
    )
    by_input = dict(zip(indices, results, strict=True))
    return [by_input.get(i) if tensor.dtype.is_floating else None for i, tensor in enumerate(op.inputs)]
