"""Makes host ops depend directly on the ops that their operands wait for, so that their order survives placement.

`tf.control_dependencies` makes an op wait through its operands if these were created in the scope too. For example, a
lookup by constant indices after an update has its constant wait for the update. Such an operand may become part of an
IPU's program, in which only ops with side effects wait.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.passes.dead_code_elimination import has_effect
from tf_ipu_shim.tf_private.protos import node_def_pb2

_NO_CONTROLS: frozenset[str] = frozenset()


def add_control_dependencies(functions: Functions) -> None:
    """Makes host ops with effects wait for the dependencies of their operands."""
    for name in functions.reached():
        graph = functions[name]
        if sum(map(_has_host_effect, graph.nodes)) > 1:
            _rewrite(graph)


def _rewrite(graph: FunctionGraph) -> None:
    carried: dict[Node, frozenset[str]] = {}
    added: dict[Node, list[str]] = {}
    for node in graph.nodes:
        by_operands = _NO_CONTROLS.union(*(carried[producer] for producer in node.producers if producer is not None))
        if has_effect(node.op):
            carried[node] = _NO_CONTROLS  # who takes its result waits for it
            present = {predecessor.name for predecessor in node.predecessors()}
            if _has_host_effect(node) and not by_operands <= present:
                added[node] = sorted(by_operands - present)
            continue
        waits = [{control.name} if _has_host_effect(control) else carried[control] for control in node.controls]
        carried[node] = by_operands.union(*waits)

    def waiting(node: Node) -> list[node_def_pb2.NodeDef] | None:
        if node not in added:
            return None
        proto = copy_node(node.proto)
        proto.input.extend(f"^{name}" for name in added[node])
        return [proto]

    if added:
        graph.rewrite(waiting)


def _has_host_effect(node: Node) -> bool:
    return vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE in node.proto.attr and has_effect(node.op)
