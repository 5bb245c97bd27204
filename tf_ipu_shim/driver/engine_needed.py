"""Decides whether a program computes anything, for which Graphcore's software would compile an engine.

Graphcore's compiler does not make an engine for a program that only returns constants or arguments, or only computes
elementwise on scalars. The driver answers those itself. So they are not counted as compilations and do not appear in
traces. Assigning a variable is a result like the others; values sent to the host or to other replicas are results too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import data_inputs, producer_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_FORWARDING = frozenset(
    "Identity IdentityN StopGradient PreventGradient EnsureShape Snapshot ReadVariableOp _Arg _Retval".split()
)
_HALF_AND_SINGLE = {types_pb2.DT_HALF, types_pb2.DT_FLOAT}
# Ops on a table on the host: the IPU sends indices and rows.
_ON_HOST_TABLES = frozenset({"ResourceGather", "ResourceScatterAdd"})
# Side effects that no result shows.
_SENDS = (
    frozenset({vocabulary.OUTFEED_ENQUEUE, vocabulary.CHUNK_ENQUEUE, vocabulary.COLLECTIVE}) | vocabulary.COLLECTIVES
)
# XLA knows which variables have values when it compiles.
_CONSTANT = vocabulary.SHAPE_QUERIES | {"ZerosLike", "OnesLike", "VariableShape", "VarIsInitializedOp"}
_ELEMENTWISE = frozenset(
    "Abs Acos Acosh Add AddN AddV2 Asin Asinh AssignAddVariableOp AssignSubVariableOp AssignVariableOp Atan Atan2 "
    "Atanh Cast Ceil Cos Cosh Div DivNoNan Equal Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Inv Less "
    "LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Neg NotEqual Pow RealDiv "
    "Reciprocal Relu Rint Round Rsqrt Select SelectV2 Sigmoid Sign Sin Sinh Sqrt Square SquaredDifference Sub Tan Tanh "
    "TruncateDiv TruncateMod Xdivy Xlogy".split()
)


def needs_engine(request: ProgramRequest, program: LoweredProgram) -> bool:
    """Returns whether Graphcore's compiler would make an engine of a program."""
    functions = {function.signature.name: function for function in program.functions}
    programs = [functions[name] for name in program.programs]
    seen = _ON_HOST_TABLES | _SENDS
    if any(node.op in seen for function in program.functions for node in function.node_def):
        return True
    if not any(map(_computes, programs)):
        return False
    return not _is_scalar(request, program, programs)


def may_compute(op: str) -> bool:
    """Returns whether ops of a type may return anything but an input or a constant."""
    return op not in _FORWARDING | _CONSTANT | {vocabulary.ASSIGN_VARIABLE, "Const", "NoOp"}


def is_scalar_elementwise(request: ProgramRequest, program: LoweredProgram) -> bool:
    """Returns whether a program only computes elementwise on scalars."""
    functions = {function.signature.name: function for function in program.functions}
    programs = [functions[name] for name in program.programs]
    return any(map(_computes, programs)) and _is_scalar(request, program, programs)


def _is_scalar(request: ProgramRequest, program: LoweredProgram, programs: Sequence[function_pb2.FunctionDef]) -> bool:
    if program.node.op != vocabulary.LAUNCH:  # it has feeds, or other ops that no argument tells of
        return False
    return len(programs) == 1 and _all_scalar(request) and all(map(_is_scalar_op, programs[0].node_def))


def _computes(program: function_pb2.FunctionDef) -> bool:
    """Returns whether a result of an XLA program is computed, given its ops in execution order."""
    computed: set[str] = set()
    constant: set[str] = set()
    casts: dict[str, tuple[str, int]] = {}  # of float16 and floats, by name: what is cast, and its type
    for node in program.node_def:
        name, op = node.name, node.op
        operands = [producer_name(tensor_name) for tensor_name in data_inputs(node)]
        if op == "Cast" and {node.attr["SrcT"].type, node.attr["DstT"].type} == _HALF_AND_SINGLE:
            source, kind = casts.get(operands[0], ("", types_pb2.DT_INVALID))
            casts[name] = operands[0], node.attr["SrcT"].type
            if kind == node.attr["DstT"].type:  # back to what it was: Graphcore's compiler leaves both out
                op, operands = "Identity", [source]
        if op in _CONSTANT:
            constant.add(name)
        elif not computed.isdisjoint(operands):
            computed.add(name)
        elif constant.issuperset(operands) and not op_types.is_stateful(op):
            constant.add(name)
        elif op not in _FORWARDING and op not in (vocabulary.ASSIGN_VARIABLE, "NoOp"):
            computed.add(name)
    results = {producer_name(tensor_name) for tensor_name in program.ret.values()}
    return not computed.isdisjoint(results.union(program.control_ret.values()))


def _all_scalar(request: ProgramRequest) -> bool:
    variables = zip(request.variable_types, request.variable_shapes)
    return all(shape == () for shape in request.arg_shapes) and all(
        kind == 0 or shape == () for kind, shape in variables
    )


def _is_scalar_op(node: node_def_pb2.NodeDef) -> bool:
    if node.op == "Const":
        return not node.attr["value"].tensor.tensor_shape.dim
    return node.op in _ELEMENTWISE or node.op in _FORWARDING or node.op == "NoOp"
