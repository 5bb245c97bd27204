"""Which ops of a program round float16 results stochastically.

They run by kernels (`stochastic_rounding.cc`), which compute in float32 and round at the end. What is marked by
`scopes.stochastic_rounding` goes before what the device is configured for. Where the device rounds only what replicas
have in common, the others are marked here.
"""

from __future__ import annotations

import dataclasses

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.replicas.replica_values import ReplicaValues
from tf_ipu_shim.compiler.xla_semantics import float16_overflow
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, xla_data_pb2

WITHIN_RANGE = frozenset(
    "Acos Acosh Asin Asinh Atan Atan2 Cos Elu Erf Erfc Sigmoid Sin Softmax Softplus Softsign Sqrt Tanh".split()
)
"""Ops that round, besides those that may overflow; the same as in `stochastic_rounding.cc`."""
_SCOPE = "STOCHASTIC_ROUNDING"
_MARKS = {"THREESTATE_ON": True, "THREESTATE_OFF": False}


def rounds(node: node_def_pb2.NodeDef) -> bool:
    """Whether an op computes float16, in its results or in variables."""
    if node.op in WITHIN_RANGE:
        return node.attr["T"].type == float16_overflow.HALF
    return float16_overflow.is_update(node) or bool(float16_overflow.half_results(node))


def mark_of(node: node_def_pb2.NodeDef) -> bool | None:
    """Whether a script, or `common_only`, says of an op that it rounds stochastically; None where nothing is said."""
    if vocabulary.FRONTEND_ATTRIBUTE in node.attr:
        told = xla_data_pb2.FrontendAttributes.FromString(node.attr[vocabulary.FRONTEND_ATTRIBUTE].s).map
        scoped = _MARKS.get(told[_SCOPE]) if _SCOPE in told else None
        if scoped is not None:
            return scoped
    return node.attr[vocabulary.ROUNDING_ATTRIBUTE].b if vocabulary.ROUNDING_ATTRIBUTE in node.attr else None


def is_rounded(request: ProgramRequest, by_default: bool) -> bool:
    """Whether any op of a program rounds stochastically.

    Args:
        request: the program.
        by_default: whether ops do that nothing is said of.
    """
    return any(
        (by_default if (mark := mark_of(node)) is None else mark) and rounds(node)
        for function in request.library.values()
        for node in function.node_def
        if by_default or vocabulary.FRONTEND_ATTRIBUTE in node.attr
    )


def common_only(request: ProgramRequest) -> ProgramRequest:
    """The program with ops marked whose results replicas need not have in common: they round to the nearest.

    Args:
        request: the program; stays as it is.
    """
    values = ReplicaValues(request.library, request.function)
    return dataclasses.replace(
        request, library={name: _marked(function, name, values) for name, function in request.library.items()}
    )


def _marked(function: function_pb2.FunctionDef, name: str, values: ReplicaValues) -> function_pb2.FunctionDef:
    differing = [index for index, node in enumerate(function.node_def) if rounds(node) and values.differs(name, node)]
    if not differing:
        return function
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    for index in differing:
        copy.node_def[index].attr[vocabulary.ROUNDING_ATTRIBUTE].b = False
    return copy


def settle_mark(node: node_def_pb2.NodeDef, is_replicated: bool) -> None:
    """Writes on an op that runs by kernels what is said of it, in the plugin's own attribute.

    Args:
        node: the op; changed in place.
        is_replicated: whether there is another replica to have something in common with.
    """
    if not is_replicated and vocabulary.ROUNDING_ATTRIBUTE in node.attr:
        del node.attr[vocabulary.ROUNDING_ATTRIBUTE]
    mark = mark_of(node)
    if mark is not None:
        node.attr[vocabulary.ROUNDING_ATTRIBUTE].b = mark
