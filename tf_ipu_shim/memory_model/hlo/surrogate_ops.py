"""Replaces ops that are slow to convert to HLO by faster ones of the same shapes and memory, for analysis.

TensorFlow builds the HLO of some common ops with its own compiler (MLIR), which is much slower than for all others. A
function that is only analysed gets other ops of the same shape and memory, such as an element-wise op for an
element-wise one. On the IPU the gradient of a ReLU is one library call, like its surrogate; its HLO also has a mask.
Batch normalisation is replaced by an older form of the same op. It has the same program, apart from conversions to the
same dtype, which are left out. Measured on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.node_defs import constant, producer_name
from tf_ipu_shim.memory_model.hlo.function_copies import rename, without_ops
from tf_ipu_shim.tf_private.protos import function_pb2, hlo_pb2, node_def_pb2, types_pb2

_SURROGATES = {
    **dict.fromkeys(("Exp", "Log1p", "Relu", "Relu6", "Rsqrt", "Sigmoid", "Sqrt", "Tanh"), "Neg"),
    **dict.fromkeys(("Relu6Grad", "ReluGrad"), "Maximum"),
}
# Profiles name computations by their op. They know the ops above, so these have surrogates only without a profile.
_UNPROFILED_SURROGATES = dict.fromkeys(("Abs", "Ceil", "Cos", "Expm1", "Floor", "Sign"), "Neg")
_BIAS_GRADIENT = "BiasAddGrad"
_NORMALISATION, _NORMALISATION_GRADIENT = "FusedBatchNormV3", "FusedBatchNormGradV3"
_OLDER = {_NORMALISATION: "FusedBatchNormV2", _NORMALISATION_GRADIENT: "FusedBatchNormGradV2"}
_OLDER_NAMES = frozenset(_OLDER.values())
_OLDER_FORMATS = frozenset({b"NHWC", b"NCHW"})
_ONLY_NEWER = "reserve_space_3"  # an extra output of the newer form, for cuDNN
_FLOATS = frozenset({types_pb2.DT_FLOAT, types_pb2.DT_HALF, types_pb2.DT_DOUBLE, types_pb2.DT_BFLOAT16})


def substitute_surrogates(function: function_pb2.FunctionDef, is_profiled: bool = False) -> function_pb2.FunctionDef:
    """Returns a function of the same shapes and memory that XLA converts faster.

    Its values differ: it is not for running.

    Example:
        >>> traced = tf.function(tf.tanh).get_concrete_function(tf.zeros([2])).function_def
        >>> {node.op for node in traced.node_def} - {node.op for node in substitute_surrogates(traced).node_def}
        {'Tanh'}
    """
    older = _replaceable_norms(function)
    surrogates = _SURROGATES if is_profiled else {**_SURROGATES, **_UNPROFILED_SURROGATES}
    replaced = {node.name for node in function.node_def if _has_surrogate(node, surrogates)}
    if not replaced and not older:
        return function
    copy = without_ops(function)
    renamed: dict[str, str] = {}
    for node in function.node_def:
        if node.name in replaced:
            _add_surrogate(copy, node)
            (output,) = op_types.output_types(node)
            (new_output,) = [argument.name for argument in op_types.op_def(_surrogate_of(node)).output_arg]
            renamed[f"{node.name}:{output}:0"] = f"{node.name}:{new_output}:0"
            continue
        new_node = copy.node_def.add()
        new_node.CopyFrom(node)
        if node.name in older:
            _use_older_op(new_node)
    rename(copy, renamed)
    return copy


def remove_extra_conversions(module: hlo_pb2.HloModuleProto) -> None:
    """Removes conversions that only the surrogate form of an op has."""
    for computation in module.computations:
        converted = [instruction for instruction in computation.instructions if instruction.opcode == "convert"]
        extra = [conversion for conversion in converted if conversion.metadata.op_type in _OLDER_NAMES]
        if extra:
            _remove_same_type(computation, extra)


def _remove_same_type(computation: Any, conversions: Sequence[Any]) -> None:
    """Removes conversions to the dtype that their operand has already."""
    types = {instruction.id: instruction.shape.element_type for instruction in computation.instructions}
    same: dict[int, int] = {}
    for conversion in conversions:  # each comes after its operand
        (operand,) = conversion.operand_ids
        if types[operand] == types[conversion.id]:
            same[conversion.id] = same.get(operand, operand)
    if not same:
        return
    remaining = [instruction for instruction in computation.instructions if instruction.id not in same]
    for user in remaining:
        if not same.keys().isdisjoint(user.operand_ids):
            user.operand_ids[:] = [same.get(operand_id, operand_id) for operand_id in user.operand_ids]
    computation.root_id = same.get(computation.root_id, computation.root_id)
    del computation.instructions[:]
    computation.instructions.extend(remaining)


def _replaceable_norms(function: function_pb2.FunctionDef) -> frozenset[str]:
    """Returns the batch normalisations that the older op can replace: no extra output is used."""
    found = [node for node in function.node_def if node.op in _OLDER and node.attr["data_format"].s in _OLDER_FORMATS]
    if not found:
        return frozenset()
    names = {node.name for node in found}
    only_newer = {f"{node.name}:{_ONLY_NEWER}:0" for node in found if node.op == _NORMALISATION}
    used_results = set(function.ret.values()) & only_newer
    for node in function.node_def:
        if node.op != _NORMALISATION_GRADIENT or node.name not in names:
            used_results.update(only_newer.intersection(node.input))
    return frozenset(names - {producer_name(tensor_name) for tensor_name in used_results})


def _use_older_op(node: node_def_pb2.NodeDef) -> None:
    if node.op == _NORMALISATION_GRADIENT:
        del node.input[5]  # reserve_space_3
    node.op = _OLDER[node.op]


def _has_surrogate(node: node_def_pb2.NodeDef, surrogates: Mapping[str, str]) -> bool:
    if node.op not in surrogates and node.op != _BIAS_GRADIENT:
        return False  # before it reads an attribute: protobuf adds one that the node lacks
    if node.attr["T"].type not in _FLOATS:
        return False
    return node.op != _BIAS_GRADIENT or node.attr["data_format"].s == b"NHWC"


def _surrogate_of(node: node_def_pb2.NodeDef) -> str:
    return _SURROGATES.get(node.op) or _UNPROFILED_SURROGATES.get(node.op, "Sum")


def _add_surrogate(function: function_pb2.FunctionDef, node: node_def_pb2.NodeDef) -> None:
    new_node = function.node_def.add(name=node.name, op=_surrogate_of(node), input=node.input)
    new_node.attr["T"].type = node.attr["T"].type
    if node.op == _BIAS_GRADIENT:
        # It sums over all axes but the last one. Only XLA knows how many there are.
        data = new_node.input[0]
        axes = f"{node.name}/axes"
        for part, value in (("zero", 0), ("one", 1)):
            function.node_def.append(constant(f"{axes}_{part}", value, types_pb2.DT_INT32))
        rank = function.node_def.add(name=f"{axes}_rank", op="Rank", input=[data])
        rank.attr["T"].type = node.attr["T"].type
        last = function.node_def.add(name=f"{axes}_last", op="Sub")
        last.input.extend([f"{axes}_rank:output:0", f"{axes}_one:output:0"])
        last.attr["T"].type = types_pb2.DT_INT32
        every = function.node_def.add(name=axes, op="Range")
        every.input.extend([f"{axes}_zero:output:0", f"{axes}_last:z:0", f"{axes}_one:output:0"])
        every.attr["Tidx"].type = types_pb2.DT_INT32
        new_node.input.insert(1, f"{axes}:output:0")
        new_node.attr["Tidx"].type = types_pb2.DT_INT32
        new_node.attr["keep_dims"].b = False
