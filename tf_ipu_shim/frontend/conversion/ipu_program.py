"""Replaces the nodes of a graph that are placed on the IPU by one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.conversion import graph_nodes, host_part
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.tracing import ipu_compiler

# Accepts the IPU part, its input tensors by name, and the names of its outputs. Adds the op that runs the part to the
# current graph, and returns its results.
Runner = Callable[[Any, dict[str, Any], Sequence[str]], Sequence[Any]]

# Attributes that ask TensorFlow to compile single nodes; in a program they have no meaning.
CLUSTER_ATTRIBUTES = ("_XlaCompile", "_XlaScope", "_XlaSeparateCompiledGradients")
_WITH = "loc:@"  # before the name of a node that one is to be with


def merge_program(graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
    """Returns the graph with one compiled program instead of its IPU nodes, see `replace_ipu_part`."""
    return replace_ipu_part(graph_def, signature_def, _call_compiled)


def replace_ipu_part(graph_def: Any, signature_def: Any, runner: Runner) -> tuple[Any, Any]:
    """Returns the graph with its IPU nodes replaced.

    Host computations before and after these nodes stay. Outputs keep their names; one that is not the first of its node
    gets a new name, which is in the signature.
    """
    ipu, host = host_part.split_graph(graph_def)
    _check_no_frames(ipu)
    if not ipu.node:
        raise ValueError(
            "No ops placed on IPU device to merge: all nodes are on the host, but merge_subgraphs needs "
            "nodes on the IPU. Leave out merge_subgraphs, or ipu_placement=False."
        )
    after = _find_nodes_after(host, ipu)
    before = graph_nodes.subgraph(host, {node.name for node in host.node} - {node.name for node in after.node})
    host_part.check_host_first(before, ipu)
    _check_not_interleaved(after, ipu)
    outputs = _output_names(ipu, after, signature_def)
    result, names = _build_graph(before, ipu, after, outputs, runner)
    signature = type(signature_def)()
    signature.CopyFrom(signature_def)
    for info in signature.outputs.values():
        info.name = names.get(info.name, info.name)
    return result, signature


def _call_compiled(part: Any, operands: dict[str, Any], outputs: Sequence[str]) -> Any:
    with scopes.ipu_scope("/device:IPU:0"):
        return ipu_compiler.compile(
            lambda *arguments: import_part(part, dict(zip(operands, arguments, strict=True)), outputs),
            list(operands.values()),
        )


def _build_graph(
    before: Any, ipu: Any, after: Any, outputs: Sequence[str], runner: Runner
) -> tuple[Any, dict[str, str]]:
    crossings = host_part.find_crossings(before, ipu)
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(before, name="")
        tensors = {name: graph.get_tensor_by_name(name) for name in crossings}
        with v1.control_dependencies(_control_dependencies(graph, before, ipu)):
            results = runner(ipu, tensors, outputs)
        with v1.device("/device:CPU:0"):
            named = {name: _rename_output(result, name) for name, result in zip(outputs, results)}
        names = {name: tensor.name for name, tensor in named.items()}
        return _append_nodes(graph.as_graph_def(), after, names), names


def _append_nodes(graph_def: Any, after: Any, names: dict[str, str]) -> Any:
    """Returns a graph with later nodes appended under their names, which TensorFlow's import would change."""
    moved = {graph_nodes.parse_tensor(name): graph_nodes.parse_tensor(now) for name, now in names.items()}
    node_names = {node.name for part in (graph_def, after) for node in part.node}
    for node in after.node:
        copy = graph_def.node.add()
        copy.CopyFrom(node)
        _drop_outer_colocations(copy, node_names)
        data = [name for name in node.input if not graph_nodes.is_control(name)]
        order = [name for name in node.input if graph_nodes.is_control(name) and name[1:] in node_names]
        copy.input[:] = [
            *(graph_nodes.format_input(moved.get(tensor, tensor)) for tensor in map(graph_nodes.parse_tensor, data)),
            *order,
        ]
    return graph_def


def import_part(graph_def: Any, operands: dict[str, Any], outputs: Sequence[str]) -> list[Any]:
    """Puts a part of a graph into the current one.

    Control inputs from outside of the part are left out: its inputs from there have been computed.
    """
    part = type(graph_def)()
    part.CopyFrom(graph_def)
    inside = {node.name for node in part.node}
    for node in part.node:
        _drop_outer_colocations(node, inside)
        node.input[:] = [name for name in node.input if not graph_nodes.is_control(name) or name[1:] in inside]
    read = {graph_nodes.parse_tensor(name) for node in part.node for name in node.input}
    used = {name: tensor for name, tensor in operands.items() if graph_nodes.parse_tensor(name) in read}
    tensors = v1.import_graph_def(part, input_map=used, return_elements=list(outputs), name="")
    return list(tensors or [])


def _drop_outer_colocations(node: Any, node_names: Container[str]) -> None:
    """Removes the device and colocation requests of a node that refer to another part."""
    for attribute in CLUSTER_ATTRIBUTES:
        node.attr.pop(attribute, None)
    if vocabulary.COLOCATION_ATTRIBUTE in node.attr:
        colocations = node.attr[vocabulary.COLOCATION_ATTRIBUTE].list.s
        colocations[:] = [
            colocation for colocation in colocations if colocation.decode().removeprefix(_WITH) in node_names
        ]
        if not colocations:
            del node.attr[vocabulary.COLOCATION_ATTRIBUTE]


def _check_no_frames(ipu: Any) -> None:
    frame_node = next((node for node in ipu.node if node.op.removeprefix("Ref") in vocabulary.FRAMES), None)
    if frame_node is not None:
        raise ValueError(
            f"{frame_node.name} ({frame_node.op}) belongs to a loop or condition made of single ops, as in "
            "TensorFlow 1, which merge_subgraphs does not support. Build and save the model with "
            "tf.compat.v1.enable_control_flow_v2(), give excluded_nodes all nodes of the loop or condition, or leave "
            "out merge_subgraphs."
        )


def _find_nodes_after(host: Any, ipu: Any) -> Any:
    """Returns the host's nodes that need results of the IPU."""
    after = {node.name for node in ipu.node}
    grew = True
    while grew:
        new = {
            node.name
            for node in host.node
            if node.name not in after and any(graph_nodes.node_name(name) in after for name in node.input)
        }
        after |= new
        grew = bool(new)
    return graph_nodes.subgraph(host, after)


def _check_not_interleaved(after: Any, ipu: Any) -> None:
    if edge := host_part.find_edge(after, ipu):
        source, target = edge
        raise ValueError(
            f"{source} is on the host between nodes on the IPU: it needs what the IPU computes, and {target} "
            "on the IPU needs it. One program cannot hold both. Do not exclude it, or exclude all before it."
        )


def _output_names(ipu: Any, after: Any, signature_def: Any) -> list[str]:
    computed = {node.name for node in ipu.node}
    signed = [name for name in graph_nodes.output_tensors(signature_def) if graph_nodes.node_name(name) in computed]
    return list(dict.fromkeys([*host_part.find_crossings(ipu, after), *signed]))


def _control_dependencies(graph: Any, before: Any, ipu: Any) -> list[Any]:
    hosts = {node.name for node in before.node}
    named = {name[1:] for node in ipu.node for name in node.input if graph_nodes.is_control(name)}
    return [graph.get_operation_by_name(name) for name in sorted(named & hosts)]


def _rename_output(result: Any, name: str) -> Any:
    """Returns a result under the name that it has in the signature."""
    node, index = graph_nodes.parse_tensor(name)
    if index == 0:
        return v1.identity(result, name=node)
    return v1.identity(result, name=f"{node}_output_{index}")
