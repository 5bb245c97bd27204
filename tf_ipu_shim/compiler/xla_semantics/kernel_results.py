"""Rewrites ops whose XLA results differ from TensorFlow's kernels for NaN, infinity or out-of-range inputs.

They are rewritten only in programs that XLA runs; the memory plan and the counters stay the same. Maxima and minima of
NaN are not here: XLA has an option for these (`launch_options.cc`). Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.custom_calls import callers_of, rewrite_functions
from tf_ipu_shim.compiler.ir.node_defs import control_inputs, copy_node, data_inputs, is_control, producer_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.xla_semantics import padded_windows
from tf_ipu_shim.tf_private.graphs import graph_to_function_def, importer, ops
from tf_ipu_shim.tf_private.operations import (
    array_ops,
    bitwise_ops,
    gen_bitwise_ops,
    gen_functional_ops,
    gen_math_ops,
    math_ops,
)
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2, graph_pb2, node_def_pb2, types_pb2

_FLOATING = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE})
# NumPy's own warn on threads where denormals are 0.
_MAXIMUM = {
    types_pb2.DT_HALF: 65504.0,
    types_pb2.DT_BFLOAT16: 3.3895313892515355e38,
    types_pb2.DT_FLOAT: 3.4028234663852886e38,
    types_pb2.DT_DOUBLE: 1.7976931348623157e308,
}
# XLA passes constants on to the functions of a conditional that has this attribute.
_PASSES_CONSTANTS = "_xla_propagate_compile_time_consts"

_serial = itertools.count()

Arguments = Sequence[Any]
# Makes what stands for an op: given its node, the op, and its inputs.
Build = Callable[[node_def_pb2.NodeDef, "Original", Arguments], Sequence[Any]]
IsOneDnn = Callable[[node_def_pb2.NodeDef], bool]


def with_kernel_results(program: LoweredProgram, runs_by_one_dnn: IsOneDnn) -> LoweredProgram:
    """Returns the program with ops that XLA compiles to the results of TensorFlow's kernels.

    Args:
        program: as XLA launches.
        runs_by_one_dnn: whether an op's kernel is oneDNN's.
    """
    functions = {function.signature.name: function for function in program.functions}

    def differs(node: node_def_pb2.NodeDef) -> bool:
        rule = _RULES.get(node.op)
        if rule is None or not rule[0](node):
            return False
        return node.op not in _AS_ONE_DNN or runs_by_one_dnn(node)

    affected = [name for name, function in functions.items() if any(map(differs, function.node_def))]
    if not affected:
        return program
    branches: list[function_pb2.FunctionDef] = []
    rewritten = rewrite_functions(
        program, callers_of(affected, functions), lambda function, _: _rewrite(function, differs, branches)
    )
    return dataclasses.replace(rewritten, functions=[*rewritten.functions, *branches])


class Original:
    """Makes a copy of an op with inputs that may differ from the original's; returns its results.

    Args:
        node: the op.
        branches: collects the branch functions that replaced ops need.
    """

    def __init__(self, node: node_def_pb2.NodeDef, branches: list[function_pb2.FunctionDef]) -> None:
        self._node, self._branches = node, branches

    def __call__(self, *inputs: Any) -> list[Any]:
        """Makes it; returns its results."""
        copy = copy_node(self._node)
        copy.name = "original"
        copy.device = ""
        copy.attr.pop(vocabulary.COLOCATION_ATTRIBUTE, None)
        copy.attr.pop("_output_shapes", None)
        copy.input[:] = [f"given_{index}:0" for index in range(len(inputs))]
        taken = {f"given_{index}:0": tensor for index, tensor in enumerate(inputs)}
        (operation,) = importer.import_graph_def(
            graph_pb2.GraphDef(node=[copy]), input_map=taken, return_elements=["original"], name=""
        )
        return list(operation.outputs)

    def either(self, condition: Any, inputs: Arguments, *builds: Callable[[Arguments], Any]) -> Any:
        """Returns the tensor of one of two functions: of the first if the condition is true."""
        names = [self._branch(build, inputs) for build in builds]
        kind = op_types.output_types(self._node)
        (result,) = gen_functional_ops.stateless_if(
            cond=condition,
            input=list(inputs),
            Tout=[dtypes.as_dtype(kind_name) for types in kind.values() for kind_name in types],
            then_branch=attr_value_pb2.NameAttrList(name=names[0]),
            else_branch=attr_value_pb2.NameAttrList(name=names[1]),
        )
        return result

    def _branch(self, build: Callable[[Arguments], Any], inputs: Arguments) -> str:
        with ops.Graph().as_default() as graph:
            arguments = [array_ops.placeholder(operand.dtype) for operand in inputs]
            results = [build(arguments)]
            branch = graph_to_function_def.graph_to_function_def(graph, graph.get_operations(), arguments, results)
        branch.signature.name = f"{self._node.op}_{build.__name__}_{next(_serial)}"
        self._branches.append(branch)
        return branch.signature.name


def _rewrite(
    function: function_pb2.FunctionDef,
    differs: Callable[[node_def_pb2.NodeDef], bool],
    branches: list[function_pb2.FunctionDef],
) -> None:
    replacements: dict[str, str] = {}  # what stands for a tensor, or for an op that others wait for
    remaining: list[node_def_pb2.NodeDef] = []
    for node in function.node_def:
        if differs(node):
            built, results = _replacement(node, branches)
            remaining.extend(built)
            replacements.update(results)
        else:
            remaining.append(node)
    copies = [node_def_pb2.NodeDef.FromString(node.SerializeToString()) for node in remaining]
    for copy in copies:
        copy.input[:] = [replacements.get(tensor_name, tensor_name) for tensor_name in copy.input]
    del function.node_def[:]
    function.node_def.extend(copies)
    for result, tensor in list(function.ret.items()):
        function.ret[result] = replacements.get(tensor, tensor)


def _replacement(
    node: node_def_pb2.NodeDef, branches: list[function_pb2.FunctionDef]
) -> tuple[list[node_def_pb2.NodeDef], dict[str, str]]:
    """Returns the ops that replace one, and the tensors that replace its results."""
    inputs = data_inputs(node)
    controls = control_inputs(node)
    definition = _function(node, branches)
    names = dict(zip((argument.name for argument in definition.signature.input_arg), inputs))
    prefix = f"{node.name}/as_kernel"
    for built in definition.node_def:
        built.input[:] = [_inlined(tensor_name, names, prefix) for tensor_name in built.input]
        built.name = f"{prefix}/{built.name}"
        built.device = node.device
        if built.op == "StatelessIf":
            built.attr[_PASSES_CONSTANTS].b = True
        if not any(tensor_name.startswith(prefix) for tensor_name in built.input):
            built.input.extend(controls)
    tensors = [
        f"{node.name}:{name}:{index}"
        for name, types in op_types.output_types(node).items()
        for index in range(len(types))
    ]
    results = {
        tensor: _inlined(definition.ret[result.name], names, prefix)
        for tensor, result in zip(tensors, definition.signature.output_arg)
    }
    last = producer_name(next(iter(results.values())))
    return list(definition.node_def), {**results, f"^{node.name}": f"^{last}"}


def _inlined(tensor_name: str, names: dict[str, str], prefix: str) -> str:
    if tensor_name in names:
        return names[tensor_name]
    return f"^{prefix}/{producer_name(tensor_name)}" if is_control(tensor_name) else f"{prefix}/{tensor_name}"


def _function(node: node_def_pb2.NodeDef, branches: list[function_pb2.FunctionDef]) -> function_pb2.FunctionDef:
    with ops.Graph().as_default() as graph:
        inputs = [array_ops.placeholder(dtypes.as_dtype(kind)) for kind in op_types.input_types(node)]
        results = _RULES[node.op][1](node, Original(node, branches), inputs)
        return graph_to_function_def.graph_to_function_def(graph, graph.get_operations(), inputs, list(results))


def _is_floating(node: node_def_pb2.NodeDef) -> bool:
    return node.attr["T"].type in _FLOATING


def _is_float32(node: node_def_pb2.NodeDef) -> bool:
    return node.attr["T"].type == types_pb2.DT_FLOAT


def _always(_: node_def_pb2.NodeDef) -> bool:
    return True


# Casts: what the processor makes of numbers that are out of range, and of NaN, is the least integer.
_INTEGERS = {types_pb2.DT_INT32: 31, types_pb2.DT_INT64: 63, types_pb2.DT_UINT64: 63}


def _is_cast_to_integer(node: node_def_pb2.NodeDef) -> bool:
    return node.attr["SrcT"].type in _FLOATING and node.attr["DstT"].type in _INTEGERS


def _cast(node: node_def_pb2.NodeDef, _: Original, inputs: Sequence[Any]) -> list[Any]:
    (value,) = inputs
    if node.attr["DstT"].type != types_pb2.DT_UINT64:
        return [_signed(value, node.attr["DstT"].type)]
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


def _arg_max(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """NaN is never the largest."""
    value, axis = inputs
    least = _float(-_MAXIMUM[value.dtype.as_datatype_enum], value.dtype)
    return original(array_ops.where_v2(value > least, value, least), axis)


def _arg_min(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    value, axis = inputs
    largest = _float(_MAXIMUM[value.dtype.as_datatype_enum], value.dtype)
    return original(array_ops.where_v2(value < largest, value, largest), axis)


def _max_pool(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """NaN is ignored, and a window starts from the least number."""
    value, *other_inputs = inputs
    least = _float(-_MAXIMUM[value.dtype.as_datatype_enum], value.dtype)
    return original(array_ops.where_v2(value > least, value, least), *other_inputs)


def _softmax(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """oneDNN returns 0 for the finite elements of a row with NaN or infinity."""
    (value,) = inputs
    infinity, zero = _float(np.inf, value.dtype), _float(0.0, value.dtype)
    largest = math_ops.reduce_max(value, axis=-1, keepdims=True)
    is_finite_beside = math_ops.logical_and(math_ops.logical_not(largest < infinity), value < infinity)
    return [array_ops.where_v2(is_finite_beside, zero, original(value)[0])]


def _in_float32(build: Build) -> Build:
    """Computes float16 results in float32, because intermediates may overflow."""

    @functools.wraps(build)
    def wide(node: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> Sequence[Any]:
        if node.attr["T"].type != types_pb2.DT_HALF:
            return build(node, original, inputs)
        results = build(node, original, [math_ops.cast(operand, dtypes.float32) for operand in inputs])
        return [math_ops.cast(result, dtypes.float16) for result in results]

    return wide


def _relu_grad(node: node_def_pb2.NodeDef, _: Original, inputs: Sequence[Any]) -> list[Any]:
    """Multiplies by 0 or 1: NaN and infinity become NaN."""
    gradient, value = inputs
    passes = value > _float(0.0, value.dtype)
    if node.op == "Relu6Grad":
        passes = math_ops.logical_and(passes, value < _float(6.0, value.dtype))
    return [array_ops.where_v2(passes, gradient, gradient * _float(0.0, value.dtype))]


@_in_float32
def _elu_grad(_: node_def_pb2.NodeDef, __: Original, inputs: Sequence[Any]) -> list[Any]:
    gradient, value = inputs
    below = (value + _float(1.0, value.dtype)) * gradient
    return [array_ops.where_v2(value < _float(0.0, value.dtype), below, gradient)]


_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@_in_float32
def _selu_grad(_: node_def_pb2.NodeDef, __: Original, inputs: Sequence[Any]) -> list[Any]:
    gradient, value = inputs
    below = gradient * (value + _float(_SELU_SCALE * _SELU_ALPHA, value.dtype))
    above = gradient * _float(_SELU_SCALE, value.dtype)
    return [array_ops.where_v2(value < _float(0.0, value.dtype), below, above)]


@_in_float32
def _sigmoid_grad(_: node_def_pb2.NodeDef, __: Original, inputs: Sequence[Any]) -> list[Any]:
    """Computes the derivative first, which may overflow."""
    result, gradient = inputs
    return [result * (_float(1.0, result.dtype) - result) * gradient]


@_in_float32
def _square_root_grad(_: node_def_pb2.NodeDef, __: Original, inputs: Sequence[Any]) -> list[Any]:
    """Divides, because the reciprocal of a large result is 0; a zero gradient stays zero."""
    result, gradient = inputs
    zero = _float(0.0, gradient.dtype)
    return [array_ops.where_v2(math_ops.equal(gradient, zero), zero, gradient / (result + result))]


def _root_grad(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """Returns a zero gradient of a result stays zero, also if the operand is 0."""
    result, gradient = inputs
    zero = _float(0.0, gradient.dtype)
    return [array_ops.where_v2(math_ops.equal(gradient, zero), zero, original(result, gradient)[0])]


def _shift(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """Limits the shift to the bit width, and to 0 for a negative operand."""
    value, by = inputs
    last = array_ops.constant(value.dtype.size * 8 - 1, value.dtype)
    by = array_ops.where_v2(math_ops.less(by, last), by, last)
    if not value.dtype.is_unsigned:
        none = array_ops.constant(0, value.dtype)
        by = array_ops.where_v2(math_ops.less(by, none), none, by)
    return original(value, by)


def _bucketize(node: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """Puts NaN into the last bucket."""
    (value,) = inputs
    last = array_ops.constant(len(node.attr["boundaries"].list.f), dtypes.int32)
    return [array_ops.where_v2(math_ops.is_nan(value), last, original(value)[0])]


def _in_top_k(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """Returns False for rows with NaN or infinity and for out-of-range classes."""
    predictions, targets, _ = inputs
    is_there = targets < array_ops.shape(predictions, out_type=targets.dtype)[1]
    is_finite = math_ops.reduce_all(math_ops.is_finite(predictions), axis=1)
    return [math_ops.logical_and(math_ops.logical_and(is_there, is_finite), original(*inputs)[0])]


_ERF_IS_ONE = 4.0  # from there on the nearest float32 is 1


def _erf(_: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    """XLA's approximation stays below 1, which gelu multiplies by large values."""
    (value,) = inputs
    is_one = math_ops.abs(value) >= _float(_ERF_IS_ONE, value.dtype)
    return [array_ops.where_v2(is_one, math_ops.sign(value), original(value)[0])]


def _convolution(node: node_def_pb2.NodeDef, original: Original, inputs: Sequence[Any]) -> list[Any]:
    def as_written(arguments: Arguments) -> Any:
        return original(*arguments)[0]

    def without_padding(arguments: Arguments) -> Any:
        return padded_windows.without_padding(node, original, arguments)

    return [original.either(padded_windows.is_finite(node, inputs), inputs, as_written, without_padding)]


# Ops whose kernels give other results if they are not oneDNN's.
_AS_ONE_DNN = frozenset({"Softmax"})
_RULES: dict[str, tuple[Callable[[node_def_pb2.NodeDef], bool], Build]] = {
    "Cast": (_is_cast_to_integer, _cast),
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
