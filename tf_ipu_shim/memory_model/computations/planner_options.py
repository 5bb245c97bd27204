"""Reads and checks PopLibs' options of matmuls, convolutions and other ops, and size limits of merged transfers."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tensorflow.compat.v2 import errors

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.cycle_model import MatmulOptions, OptionError
from tf_ipu_shim.cycle_model.planning import ORIGIN, PARTIALS
from tf_ipu_shim.poplar_sdk import library_options
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, xla_data_pb2

_PARTIALS = {"F16": "half", "F32": "float"}
_OPS = {
    "dot": re.compile("MatMul|Einsum|Dot|Popnn|Cholesky|Solve|Qr|Eig|Svd"),
    "convolution": re.compile("Conv"),
    "pooling": re.compile("Pool"),
    "slice": re.compile("^(Resource)?Gather(V2)?$"),
}
"""Ops for which PopLibs reads options, by planner; matmuls and convolutions have XLA's instruction as key."""


class PlannerOptions(NamedTuple):
    """Planner options of matmuls without separate options, and merge limits of collectives.

    Args:
        dot: matmuls, as XLA's instruction is called.
        merged_sum_bytes: bytes up to which sums over replicas are sent together.
        merged_copy_bytes: the same for host exchange.
        solve_block: rows of the blocks that triangular solves compute directly; 0 for PopLibs' default.
    """

    dot: MatmulOptions = MatmulOptions()
    convolution: MatmulOptions = MatmulOptions()
    merged_sum_bytes: int = 0
    merged_gather_bytes: int = 0
    merged_copy_bytes: int = 0
    solve_block: int = 0

    def of(self, opcode: str, marks: dict[str, dict[str, Any]]) -> MatmulOptions:
        """Returns the options of one matmul or convolution."""
        planning: MatmulOptions = getattr(self, opcode)
        return planning.updated(marks.get(opcode, {})) if marks else planning


def planner_options_of(options: Any, request: ProgramRequest) -> PlannerOptions:
    """Returns the planner options that a configuration asks for.

    Poplar reads the options of matmuls when it plans one: a program without convolutions runs with any for these.
    """
    for library, flags in (("pooling", options.pooling_options), ("slice", options.slice_options)):
        _planning(flags, request, library)  # only checked: the model does not depend on them
    return PlannerOptions(
        _planning(options.matmul_options, request, "dot"),
        _planning(options.convolution_options, request, "convolution"),
        options.max_cross_replica_sum_buffer_size,
        options.max_all_gather_buffer_size,
        options.max_send_recv_cluster_size,
        options.triangular_solve_expander_block_size,
    )


def _planning(flags: Iterable[Any], request: ProgramRequest, library: str) -> MatmulOptions:
    options = {flag.option: flag.value for flag in flags}
    error = find_error(options, library)
    if error is None:
        return MatmulOptions().updated(options)
    if reads_options(library, (node.op for function in request.library.values() for node in function.node_def)):
        raise errors.InternalError(None, None, error)
    return MatmulOptions()


def find_error(options: Mapping[str, Any], library: str | None = None) -> str | None:
    """Returns Poplar's error for a wrong value or, of a library whose names are known, an unknown name; None if valid.

    Example:
        >>> find_error({"partialsType": "half"}, "pooling")[:75]
        "[Poplar][Build graph] invalid_option: Unrecognised option 'partialsType' of"
    """
    if library is not None and (messages := library_options.unrecognised(library, options)):
        return ORIGIN + next(iter(messages.values()))
    try:
        MatmulOptions().updated(options)
    except OptionError as error:
        return str(error)
    return None


def reads_options(library: str, types: Iterable[str]) -> bool:
    """Returns whether ops contain some for which Poplar reads options of a library.

    Example:
        >>> reads_options("convolution", ["Relu", "Conv2D"]), reads_options("dot", ["Relu", "Conv2D"])
        (True, False)
    """
    return any(_OPS[library].search(name) for name in types)


Marks = dict[str, dict[str, Any]]
"""Maps XLA instructions to the options that annotate their ops."""


def options_by_op(functions: Iterable[function_pb2.FunctionDef]) -> dict[str, Marks]:
    """Returns the options set on ops by name; options of a loop, branch or call apply to the ops in it.

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
    """Returns an op's options: its own override its scope's."""
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
