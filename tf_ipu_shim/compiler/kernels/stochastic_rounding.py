"""Decides which ops of a program round float16 results stochastically.

They run in mode `kernels` (`stochastic_rounding.cc`), which compute in float32 and round at the end. An annotation by
`scopes.stochastic_rounding` overrides the device's configuration. If the device rounds only values common to replicas,
the other ops are marked here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.node_defs import copy_function
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
    """Returns whether an op computes float16 results or variables."""
    if node.op in WITHIN_RANGE:
        return node.attr["T"].type == float16_overflow.HALF
    return float16_overflow.is_update(node) or bool(float16_overflow.float16_results(node))


def rounding_annotation(node: node_def_pb2.NodeDef) -> bool | None:
    """Returns whether an op is annotated for stochastic rounding; None without annotation."""
    if vocabulary.FRONTEND_ATTRIBUTE in node.attr:
        attributes = xla_data_pb2.FrontendAttributes.FromString(node.attr[vocabulary.FRONTEND_ATTRIBUTE].s).map
        scoped = _MARKS.get(attributes[_SCOPE]) if _SCOPE in attributes else None
        if scoped is not None:
            return scoped
    return node.attr[vocabulary.ROUNDING_ATTRIBUTE].b if vocabulary.ROUNDING_ATTRIBUTE in node.attr else None


def is_rounded(request: ProgramRequest, by_default: bool) -> bool:
    """Returns whether any op of a program rounds stochastically."""
    return any(
        (by_default if (annotation := rounding_annotation(node)) is None else annotation) and rounds(node)
        for function in request.library.values()
        for node in function.node_def
        if by_default or vocabulary.FRONTEND_ATTRIBUTE in node.attr
    )


def round_common_values_only(request: ProgramRequest, reached: Iterable[str]) -> ProgramRequest:
    """Returns the program with ops annotated to round to nearest if replicas may differ."""
    values = ReplicaValues(request.library, reached)
    return dataclasses.replace(
        request, library={name: _marked(function, name, values) for name, function in request.library.items()}
    )


def _marked(function: function_pb2.FunctionDef, name: str, values: ReplicaValues) -> function_pb2.FunctionDef:
    differing = [index for index, node in enumerate(function.node_def) if rounds(node) and values.differs(name, node)]
    if not differing:
        return function
    copy = copy_function(function)
    for index in differing:
        copy.node_def[index].attr[vocabulary.ROUNDING_ATTRIBUTE].b = False
    return copy


def set_rounding(node: node_def_pb2.NodeDef, is_replicated: bool) -> None:
    """Writes an op's rounding mode to the plugin's attribute, for execution mode `kernels`."""
    if not is_replicated and vocabulary.ROUNDING_ATTRIBUTE in node.attr:
        del node.attr[vocabulary.ROUNDING_ATTRIBUTE]
    annotation = rounding_annotation(node)
    if annotation is not None:
        node.attr[vocabulary.ROUNDING_ATTRIBUTE].b = annotation
