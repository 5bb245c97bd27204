"""Replaces a custom op of a Poplar library by a TensorFlow function that the user registers."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops import emulation_registry as registry
from tf_ipu_shim.frontend.ops.emulation_registry import Emulation
from tf_ipu_shim.frontend.ops.user_ops.user_op_arguments import UserOpCall


def register_emulation(
    name: str | os.PathLike[str], python_function: Callable[..., Any] | None, gradient: Callable[..., Any] | None = None
) -> None:
    """Registers a TensorFlow function that replaces the op of a Poplar library, in this process.

    The function gets the op's inputs, and `attributes=` if it has that parameter, or `**kwargs` and the op has
    attributes. It returns a tensor for each output, or the only one. It is traced into the program around it, and runs
    on the IPU of the op. TensorFlow differentiates it (`tf.custom_gradient` included), unless there is a function for
    its gradient.

    Two libraries of one name in two directories are distinguished by their paths. A path with a directory matches the
    libraries whose paths end with it, an absolute one only that file. The longest match is used.

    Args:
        name: the library's file name (`"libproduct.so"`) or path (`"build/libproduct.so"`), for all its ops; or with
            the op's name behind it (`"libproduct.so:BuildSum"`), for one of them.
        python_function: emulates the op; replaces a function that is already registered under this path. Another
            function under the same file name without a directory is refused. None removes the registered function.
        gradient: called with three lists: the gradients of the outputs, the inputs and the outputs. It also gets
            `attributes=` (the op's `gradient_attributes`) if `python_function` does. It returns a list with a gradient,
            or None, for each input that has one.

    Raises:
        TypeError: the function to call is not callable.
        ValueError: the name names no file, or another function is registered under this file name.

    Example:
        >>> register_emulation("libproduct.so", lambda a, b: a * b)
        >>> outputs = {"output_types": [tf.float32], "output_shapes": [[]]}
        >>> (product,) = ipu.custom_ops.precompiled_user_op([3.0, 4.0], "/anywhere/libproduct.so", outs=outputs)
        >>> float(product)
        12.0
    """
    library, op = registry.parse_name(name)
    for argument, function in (("python_function", python_function), ("gradient", gradient)):
        if function is not None and not callable(function):
            raise TypeError(
                f"register_emulation({name!r}): {argument} is {function!r}, and has to be a function. Pass a function."
            )
    if python_function is not None:
        registry.register_emulation(Emulation(library, op, python_function, gradient))
    elif gradient is None:
        registry.emulations.pop((library, op), None)
    else:
        raise TypeError(
            f"register_emulation({name!r}): only a gradient was given; expected python_function. Pass "
            "python_function too."
        )


def run_emulation(emulation: Emulation, call: UserOpCall) -> list[tf.Tensor]:
    """Runs the function that replaces an op."""
    values = [x if i in call.differentiable else tf.stop_gradient(x) for i, x in enumerate(call.inputs)]
    if emulation.gradient is None:
        return _check_outputs(emulation, call, values)
    return list(_call_with_gradient(emulation, emulation.gradient, call)(*values))


def _call_with_gradient(emulation: Emulation, gradient: Callable[..., Any], call: UserOpCall) -> Callable[..., Any]:
    @tf.custom_gradient
    def run(*values: Any) -> Any:
        results = _check_outputs(emulation, call, values)

        def gradients(*upstream: Any) -> list[Any]:
            input_gradients = _call_gradient(emulation.name, gradient, call, upstream, values, results)
            return [input_gradients.get(index) for index in range(len(values))]

        return results, gradients

    return run


def _check_outputs(emulation: Emulation, call: UserOpCall, values: Sequence[Any]) -> list[tf.Tensor]:
    returned = _call_function(emulation.function, *values, attributes=call.attributes)
    results = [] if returned is None else list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if len(results) != len(call.types):
        raise ValueError(
            f"The emulation of {emulation.name!r} returned {len(results)} tensors, and `outs` has "
            f"{len(call.types)}; both numbers must be equal. Return one tensor for each output."
        )
    for index, (result, dtype, shape) in enumerate(zip(results, call.types, call.shapes, strict=True)):
        tensor = results[index] = tf.convert_to_tensor(result)
        if tensor.dtype != dtype or not tensor.shape.is_compatible_with(shape):
            raise ValueError(
                f"Output {index} of the emulation of {emulation.name!r} is {tensor.dtype.name} of the "
                f"shape {tensor.shape}, and `outs` says {dtype.name} of the shape {shape}; both must be "
                "equal. Change `outs` or the function."
            )
        if not tf.executing_eagerly():
            tensor.set_shape(shape)
    return results


def _call_gradient(
    name: str,
    gradient: Callable[..., Any],
    call: UserOpCall,
    upstream: Sequence[Any],
    values: Sequence[Any],
    results: Sequence[Any],
) -> dict[int, Any]:
    filled_upstream = [
        tf.zeros_like(x) if upstream_gradient is None else upstream_gradient
        for upstream_gradient, x in zip(upstream, results, strict=True)
    ]
    returned = _call_function(
        gradient, filled_upstream, list(values), list(results), attributes=call.gradient_attributes
    )
    gradients = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if len(gradients) != len(call.differentiable):
        raise ValueError(
            f"The gradient of {name!r} returned {len(gradients)} tensors, but "
            f"{len(call.differentiable)} inputs have gradients: those with the indices "
            f"{call.differentiable}; expected one for each. Return None where there is no gradient."
        )
    return dict(zip(call.differentiable, gradients, strict=True))


def _call_function(function: Callable[..., Any], *args: Any, attributes: str) -> Any:
    """Calls a user's function, with the attributes if it has a parameter for them or, written as one, `**kwargs`."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # a callable that is not written in Python
        return function(*args)
    any_by_name = inspect.isroutine(function) and any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
    if "attributes" in parameters or (attributes and any_by_name):
        return function(*args, attributes=attributes)
    return function(*args)
