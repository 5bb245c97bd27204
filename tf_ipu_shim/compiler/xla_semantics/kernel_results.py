"""Makes ops in XLA programs treat NaN, infinity and out-of-range inputs as TensorFlow's kernels do.

They are rewritten only in programs that XLA runs; the memory plan and the counters stay the same. Maxima and minima of
NaN are not here: XLA has an option for these (`launch_options.cc`). Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir.custom_calls import callers_of, rewrite_functions
from tf_ipu_shim.compiler.ir.op_functions import Original, Replacement, inline_replacements
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.xla_semantics import padded_windows
from tf_ipu_shim.tf_private.operations import array_ops, bitwise_ops, gen_bitwise_ops, gen_math_ops, math_ops
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_FLOATING = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE})
# NumPy's own warn on threads where denormals are 0.
_MAXIMUM = {
    types_pb2.DT_HALF: 65504.0,
    types_pb2.DT_BFLOAT16: 3.3895313892515355e38,
    types_pb2.DT_FLOAT: 3.4028234663852886e38,
    types_pb2.DT_DOUBLE: 1.7976931348623157e308,
}
Build = Callable[..., Sequence[Any]]
"""Makes an op's results from an `Original` and the op's inputs."""


def with_kernel_results(
    program: LoweredProgram, runs_by_one_dnn: Callable[[node_def_pb2.NodeDef], bool]
) -> LoweredProgram:
    """Returns the program with ops that XLA compiles to the results of TensorFlow's kernels.

    Args:
        program: as XLA launches.
        runs_by_one_dnn: whether an op's kernel is oneDNN's.
    """
    functions = {function.signature.name: function for function in program.functions}

    def replacement(node: node_def_pb2.NodeDef) -> Replacement | None:
        rule = _RULES.get(node.op)
        if rule is None or not rule[0](node) or (node.op in _AS_ONE_DNN and not runs_by_one_dnn(node)):
            return None
        return Replacement(rule[1])

    affected = [name for name, function in functions.items() if any(map(replacement, function.node_def))]
    if not affected:
        return program
    branches: list[function_pb2.FunctionDef] = []
    rewritten = rewrite_functions(
        program,
        callers_of(affected, functions),
        lambda function, _: branches.extend(inline_replacements(function, replacement)),
    )
    return dataclasses.replace(rewritten, functions=[*rewritten.functions, *branches])


def _is_floating(node: node_def_pb2.NodeDef) -> bool:
    return node.attr["T"].type in _FLOATING


def _is_float32(node: node_def_pb2.NodeDef) -> bool:
    return node.attr["T"].type == types_pb2.DT_FLOAT


def _always(_: node_def_pb2.NodeDef) -> bool:
    return True


# Casts: what the processor makes of numbers that are out of range, and of NaN, is the least integer. XLA takes the
# product of a bool that is False, as a number, with NaN or infinity as 0.
_COMPLEX = frozenset({types_pb2.DT_COMPLEX64, types_pb2.DT_COMPLEX128})
_INTEGERS = {types_pb2.DT_INT32: 31, types_pb2.DT_INT64: 63, types_pb2.DT_UINT64: 63}


def _is_cast_to_other_results(node: node_def_pb2.NodeDef) -> bool:
    source, kind = node.attr["SrcT"].type, node.attr["DstT"].type
    if source == types_pb2.DT_BOOL:
        return kind in _FLOATING or kind in _COMPLEX
    return source in _FLOATING and kind in _INTEGERS


def _cast(original: Original, value: Any) -> list[Any]:
    kind = original.node.attr["DstT"].type
    if value.dtype == dtypes.bool:
        one, zero = (array_ops.constant(number, dtypes.as_dtype(kind)) for number in (1, 0))
        return [array_ops.where_v2(value, one, zero)]
    if kind != types_pb2.DT_UINT64:
        return [_signed(value, kind)]
    signed = _signed(value, types_pb2.DT_INT64)
    beyond = _signed(value - math_ops.cast(2.0**63, value.dtype), types_pb2.DT_INT64)
    is_negative = gen_bitwise_ops.right_shift(signed, array_ops.constant(63, dtypes.int64))
    bits = bitwise_ops.bitwise_or(signed, bitwise_ops.bitwise_and(beyond, is_negative))
    return [array_ops.bitcast(bits, dtypes.uint64)]


def _signed(value: Any, kind: int) -> Any:
    bits = _INTEGERS[kind]
    least = array_ops.constant(-(2**bits), dtypes.as_dtype(kind))
    return array_ops.where_v2(value < _float(2.0**bits, value.dtype), gen_math_ops.cast(value, kind), least)


def _float(value: float, kind: dtypes.DType) -> Any:
    with np.errstate(over="ignore"):
        return array_ops.constant(np.array(value).astype(kind.as_numpy_dtype), kind)


def _arg_max(original: Original, value: Any, axis: Any) -> list[Any]:
    """NaN is never the largest."""
    least = _float(-_MAXIMUM[value.dtype.as_datatype_enum], value.dtype)
    return original(array_ops.where_v2(value > least, value, least), axis)


def _arg_min(original: Original, value: Any, axis: Any) -> list[Any]:
    largest = _float(_MAXIMUM[value.dtype.as_datatype_enum], value.dtype)
    return original(array_ops.where_v2(value < largest, value, largest), axis)


def _max_pool(original: Original, value: Any, *other_inputs: Any) -> list[Any]:
    """NaN is ignored, and a window starts from the least number."""
    least = _float(-_MAXIMUM[value.dtype.as_datatype_enum], value.dtype)
    return original(array_ops.where_v2(value > least, value, least), *other_inputs)


def _softmax(original: Original, value: Any) -> list[Any]:
    """oneDNN returns 0 for the finite elements of a row with NaN or infinity."""
    infinity, zero = _float(np.inf, value.dtype), _float(0.0, value.dtype)
    largest = math_ops.reduce_max(value, axis=-1, keepdims=True)
    is_finite_beside = math_ops.logical_and(math_ops.logical_not(largest < infinity), value < infinity)
    return [array_ops.where_v2(is_finite_beside, zero, original(value)[0])]


def _in_float32(build: Build) -> Build:
    """Computes float16 results in float32, because intermediates may overflow."""

    @functools.wraps(build)
    def wide(original: Original, *inputs: Any) -> Sequence[Any]:
        if original.node.attr["T"].type != types_pb2.DT_HALF:
            return build(original, *inputs)
        results = build(original, *(math_ops.cast(operand, dtypes.float32) for operand in inputs))
        return [math_ops.cast(result, dtypes.float16) for result in results]

    return wide


def _relu_grad(original: Original, gradient: Any, value: Any) -> list[Any]:
    """Multiplies by 0 or 1: NaN and infinity become NaN."""
    passes = value > _float(0.0, value.dtype)
    if original.node.op == "Relu6Grad":
        passes = math_ops.logical_and(passes, value < _float(6.0, value.dtype))
    return [array_ops.where_v2(passes, gradient, gradient * _float(0.0, value.dtype))]


@_in_float32
def _elu_grad(_: Original, gradient: Any, value: Any) -> list[Any]:
    below = (value + _float(1.0, value.dtype)) * gradient
    return [array_ops.where_v2(value < _float(0.0, value.dtype), below, gradient)]


_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@_in_float32
def _selu_grad(_: Original, gradient: Any, value: Any) -> list[Any]:
    below = gradient * (value + _float(_SELU_SCALE * _SELU_ALPHA, value.dtype))
    above = gradient * _float(_SELU_SCALE, value.dtype)
    return [array_ops.where_v2(value < _float(0.0, value.dtype), below, above)]


@_in_float32
def _sigmoid_grad(_: Original, result: Any, gradient: Any) -> list[Any]:
    """Computes the derivative first, which may overflow."""
    return [result * (_float(1.0, result.dtype) - result) * gradient]


@_in_float32
def _square_root_grad(_: Original, result: Any, gradient: Any) -> list[Any]:
    """Divides, because the reciprocal of a large result is 0; a zero gradient stays zero."""
    zero = _float(0.0, gradient.dtype)
    return [array_ops.where_v2(math_ops.equal(gradient, zero), zero, gradient / (result + result))]


def _root_grad(_: Original, result: Any, gradient: Any) -> list[Any]:
    """Multiplies in the kernels' order, as the cube of a result overflows; a zero gradient stays zero."""
    zero = _float(0.0, gradient.dtype)
    product = (gradient * _float(-0.5, gradient.dtype) * result) * (result * result)
    return [array_ops.where_v2(math_ops.equal(gradient, zero), zero, product)]


def _shift(original: Original, value: Any, by: Any) -> list[Any]:
    """Limits the shift to the bit width, and to 0 for a negative operand."""
    last = array_ops.constant(value.dtype.size * 8 - 1, value.dtype)
    by = array_ops.where_v2(math_ops.less(by, last), by, last)
    if not value.dtype.is_unsigned:
        none = array_ops.constant(0, value.dtype)
        by = array_ops.where_v2(math_ops.less(by, none), none, by)
    return original(value, by)


def _bucketize(original: Original, value: Any) -> list[Any]:
    """Puts NaN into the last bucket."""
    last = array_ops.constant(len(original.node.attr["boundaries"].list.f), dtypes.int32)
    return [array_ops.where_v2(math_ops.is_nan(value), last, original(value)[0])]


def _in_top_k(original: Original, predictions: Any, targets: Any, k: Any) -> list[Any]:
    """Returns False for rows with NaN or infinity and for out-of-range classes."""
    is_there = targets < array_ops.shape(predictions, out_type=targets.dtype)[1]
    is_finite = math_ops.reduce_all(math_ops.is_finite(predictions), axis=1)
    return [math_ops.logical_and(math_ops.logical_and(is_there, is_finite), original(predictions, targets, k)[0])]


_ERF_IS_ONE = 4.0  # from there on the nearest float32 is 1


def _erf(original: Original, value: Any) -> list[Any]:
    """XLA's approximation stays below 1, which gelu multiplies by large values."""
    is_one = math_ops.abs(value) >= _float(_ERF_IS_ONE, value.dtype)
    return [array_ops.where_v2(is_one, math_ops.sign(value), original(value)[0])]


def _convolution(original: Original, *inputs: Any) -> list[Any]:
    def as_written(arguments: Sequence[Any]) -> Any:
        return original(*arguments)[0]

    def without_padding(arguments: Sequence[Any]) -> Any:
        return padded_windows.without_padding(original.node, original, arguments)

    return [original.either(padded_windows.is_finite(original.node, inputs), inputs, as_written, without_padding)]


# Ops whose kernels give other results if they are not oneDNN's.
_AS_ONE_DNN = frozenset({"Softmax"})
_RULES: dict[str, tuple[Callable[[node_def_pb2.NodeDef], bool], Build]] = {
    "Cast": (_is_cast_to_other_results, _cast),
    "ArgMax": (_is_floating, _arg_max),
    "ArgMin": (_is_floating, _arg_min),
    "MaxPool": (_is_floating, _max_pool),
    "MaxPoolGrad": (_is_floating, _max_pool),
    "Softmax": (_is_floating, _softmax),
    "ReluGrad": (_is_floating, _relu_grad),
    "Relu6Grad": (_is_floating, _relu_grad),
    "EluGrad": (_always, _elu_grad),
    "SeluGrad": (_always, _selu_grad),
    "SigmoidGrad": (_is_floating, _sigmoid_grad),
    "SqrtGrad": (_is_floating, _square_root_grad),
    "RsqrtGrad": (_is_floating, _root_grad),
    "LeftShift": (_always, _shift),
    "RightShift": (_always, _shift),
    "Bucketize": (_is_floating, _bucketize),
    "InTopKV2": (_always, _in_top_k),
    "Erf": (_is_float32, _erf),
    **dict.fromkeys(padded_windows.OPERANDS, (padded_windows.multiplies_padding, _convolution)),
}
