"""Replaces dense gradient descent on looked-up rows by a scatter into the table.

The gradient of a lookup is zero outside of these rows. Written as one tensor of the table's size, it costs as much as
three passes over the table in each step.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import control_inputs, copy_annotations, producer_name
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_GRADIENT_DESCENT, _SUM = "ResourceApplyGradientDescent", "UnsortedSegmentSum"


def update_rows(functions: Functions) -> None:
    """Replaces gradient descent by the summed lookup gradients with a scatter into the table.

    float16 keeps the sum: it is accumulated in float32, and rounded once.
    """
    for name in functions.reached():
        graph = functions[name]
        if {_GRADIENT_DESCENT, _SUM} <= graph.ops:
            graph.rewrite(lambda node, graph=graph: _as_scatter(node, graph))  # type: ignore[misc]
            graph.drop_unused(_SUM, "Identity")


def _as_scatter(node: Node, graph: FunctionGraph) -> list[node_def_pb2.NodeDef] | None:
    if node.op != _GRADIENT_DESCENT or node.proto.attr["T"].type != types_pb2.DT_FLOAT:
        return None
    total = _only_source(node, graph)
    if total is None:
        return None
    variable, rate = node.inputs[:2]
    gradients, rows = total.inputs[:2]
    scaled = node_def_pb2.NodeDef(name=f"{node.name}/scaled", op="Mul", input=[gradients, rate])
    scaled.attr["T"].type = types_pb2.DT_FLOAT
    controls = control_inputs(node.proto)
    scatter = node_def_pb2.NodeDef(
        name=node.name, op="ResourceScatterSub", input=[variable, rows, f"{scaled.name}:z:0", *controls]
    )
    scatter.attr["dtype"].type = types_pb2.DT_FLOAT
    scatter.attr["Tindices"].type = total.proto.attr["Tindices"].type
    for new_node in (scaled, scatter):
        new_node.device = node.proto.device
        copy_annotations(node.proto, new_node)
    return [scaled, scatter]


def _only_source(node: Node, graph: FunctionGraph) -> Node | None:
    """Returns the segment sum whose result is used only as this node's gradient."""
    user, source = node, node.producers[2]
    returned = {producer_name(result.tensor) for result in graph.results}
    while source is not None and source.users == [user] and source.name not in returned:
        if source.op == _SUM:
            return source
        if source.op != "Identity":
            return None
        user, source = source, source.producers[0]
    return None
