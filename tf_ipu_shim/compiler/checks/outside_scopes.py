"""Refuses `outside_compilation_scope` within loops and branches, which Graphcore's compiler does not support either.

Ops that this package puts on the host, such as feeds and prints of tensors, are allowed there. So may the scopes of
pipeline stages: the loop over mini-batches is not the script's.
"""

from __future__ import annotations

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions

_CONTROL_FLOW = vocabulary.LOOPS | vocabulary.BRANCHES
# Of loops and branches: those of a pipeline, and those that are on the host themselves.
_EXEMPT = {vocabulary.PIPELINE_ATTRIBUTE, vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE}


def refuse_in_control_flow(diagnostics: Diagnostics, functions: Functions) -> None:
    """Raises if a loop or branch contains an `outside_compilation_scope`."""
    graphs = {name: functions[name] for name in functions.reached()}
    marked = {name: node for name, graph in graphs.items() if (node := _first_marked(graph)) is not None}
    if not marked:
        return
    for graph in graphs.values():
        for node in graph.nodes if not graph.ops.isdisjoint(_CONTROL_FLOW) else ():
            if node.op not in _CONTROL_FLOW or not _EXEMPT.isdisjoint(node.proto.attr):
                continue
            for called in filter(functions.__contains__, op_types.called_functions(node.proto)):
                marked_function = next((name for name in functions.reached(called) if name in marked), None)
                if marked_function is not None:
                    raise errors_impl.UnimplementedError(
                        None,
                        None,
                        "`outside_compilation_scope` enclosed in control flow (loop or cond) is not supported: "
                        f"{diagnostics.describe(marked_function, marked[marked_function])} is in {node.name} "
                        f"({node.op}). Leave the scope out of the loop or branch, print tensors in it with "
                        "ipu.internal_ops.print_tensor, and send what the host computes with through an "
                        "IPUOutfeedQueue.",
                    )


def _first_marked(graph: FunctionGraph) -> Node | None:
    return next((node for node in graph.nodes if vocabulary.OUTSIDE_SCOPE_ATTRIBUTE in node.proto.attr), None)
