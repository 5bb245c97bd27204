"""Reads the options by which PopLibs plans each matmul and convolution, global and per op."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from tensorflow.compat.v2 import errors

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.cycle_model import MatmulOptions, OptionError
from tf_ipu_shim.cycle_model.planning import PARTIALS
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, xla_data_pb2

_PARTIALS = {"F16": "half", "F32": "float"}
_PRODUCTS = {
    "dot": re.compile("MatMul|Einsum|Dot|Popnn|Cholesky|Solve|Qr|Eig|Svd"),
    "convolution": re.compile("Conv"),
}
"""Ops that are or contain matmuls, keyed by XLA instruction."""


class PlannerOptions(NamedTuple):
    """Planner options of matmuls without their own, and merge limits of collectives.

    Args:
        dot: matmuls, as XLA's instruction is called.
        merged_sum_bytes: bytes up to which sums over replicas are sent together.
        merged_copy_bytes: the same of copies with the host, of scopes on it.
    """

    dot: MatmulOptions = MatmulOptions()
    convolution: MatmulOptions = MatmulOptions()
    merged_sum_bytes: int = 0
    merged_gather_bytes: int = 0
    merged_copy_bytes: int = 0

    def of(self, opcode: str, marks: dict[str, dict[str, Any]]) -> MatmulOptions:
        """Returns the options of one matmul or convolution."""
        planning: MatmulOptions = getattr(self, opcode)
        return planning.updated(marks.get(opcode, {})) if marks else planning


def planner_options_of(options: Any, request: ProgramRequest) -> PlannerOptions:
    """Returns the planner options that a configuration asks for.

    Poplar reads the options of matmuls when it plans one: a program without convolutions runs with any for these.
    """
    dot, convolution = options.matmul_options, options.convolution_options
    return PlannerOptions(
        _planning(dot, request, "dot"),
        _planning(convolution, request, "convolution"),
        options.max_cross_replica_sum_buffer_size,
        options.max_all_gather_buffer_size,
        options.max_send_recv_cluster_size,
    )


def _planning(flags: Iterable[Any], request: ProgramRequest, opcode: str) -> MatmulOptions:
    try:
        return MatmulOptions().updated({flag.option: flag.value for flag in flags})
    except OptionError as error:
        if has_matmuls(opcode, (node.op for function in request.library.values() for node in function.node_def)):
            raise errors.InternalError(None, None, str(error)) from None
        return MatmulOptions()


def has_matmuls(opcode: str, types: Iterable[str]) -> bool:
    """Returns whether ops contain matmuls or convolutions, for which Poplar reads options.

    Example:
        >>> has_matmuls("convolution", ["Relu", "Conv2D"]), has_matmuls("dot", ["Relu", "Conv2D"])
        (True, False)
    """
    return any(_PRODUCTS[opcode].search(name) for name in types)


Marks = dict[str, dict[str, Any]]
"""The options that annotate an op, keyed by XLA instruction."""


def options_by_op(functions: Iterable[function_pb2.FunctionDef]) -> dict[str, Marks]:
    """Returns the options set on ops by name; those of a loop, branch or call apply to the ops in it.

    Not for ops whose name is also in another function, as HLO identifies ops only by name.
    """
    by_name = {function.signature.name: function for function in functions}
    names = collections.Counter(node.name for function in by_name.values() for node in function.node_def)
    found: dict[str, Marks] = {}

    def add(function: function_pb2.FunctionDef, enclosing: Marks) -> None:
        for node in function.node_def:
            marks = merged_options(node, enclosing if names[node.name] == 1 else {})
            if marks:
                found[node.name] = _with(found.get(node.name, {}), marks)
                for name in op_types.called_functions(node):
                    if name in by_name:
                        add(by_name[name], marks)

    for function in by_name.values():
        add(function, {})
    return found


def merged_options(node: node_def_pb2.NodeDef, enclosing: Marks) -> Marks:
    """Returns an op's options: its own before those of what contains it."""
    if vocabulary.PLANNING_ATTRIBUTE in node.attr or vocabulary.FRONTEND_ATTRIBUTE in node.attr:
        return _with(enclosing, _marks(node))
    return enclosing


def _with(marks: Marks, inner: Marks) -> Marks:
    return {opcode: {**marks.get(opcode, {}), **options} for opcode, options in inner.items()}


def _marks(node: node_def_pb2.NodeDef) -> Marks:
    marks: Marks = {"dot": {}, "convolution": {}}
    if vocabulary.FRONTEND_ATTRIBUTE in node.attr:
        attributes = dict(xla_data_pb2.FrontendAttributes.FromString(node.attr[vocabulary.FRONTEND_ATTRIBUTE].s).map)
        if attributes.get("PARTIALS_TYPE") in _PARTIALS:
            for options in marks.values():
                options[PARTIALS] = _PARTIALS[attributes["PARTIALS_TYPE"]]
    if vocabulary.PLANNING_ATTRIBUTE in node.attr:
        for opcode, options in json.loads(node.attr[vocabulary.PLANNING_ATTRIBUTE].s).items():
            marks[opcode].update(options)
    return marks
