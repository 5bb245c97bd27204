"""Splits a graph into host and IPU parts, and finds the tensors that cross between them."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.conversion import graph_nodes, node_types
from tf_ipu_shim.tf_private.protos import meta_graph_pb2, node_def_pb2, tensor_shape_pb2


def is_on_ipu(node: Any) -> bool:
    """Returns whether a node is placed on an IPU."""
    return "IPU" in node.device


def split_graph(graph_def: Any) -> tuple[Any, Any]:
    """Returns the part of a graph on the IPU, and the rest."""
    placed = {node.name for node in graph_def.node if is_on_ipu(node)}
    return (
        graph_nodes.subgraph(graph_def, placed),
        graph_nodes.subgraph(graph_def, {node.name for node in graph_def.node} - placed),
    )


def find_crossings(sender: Any, receiver: Any) -> list[str]:
    """Returns the tensors that pass from one part to another, each once, in the order in which they are read."""
    sends = {node.name for node in sender.node}
    inputs = (
        graph_nodes.parse_tensor(name)
        for node in receiver.node
        for name in node.input
        if not graph_nodes.is_control(name) and graph_nodes.node_name(name) in sends
    )
    return [f"{node}:{index}" for node, index in dict.fromkeys(inputs)]


def check_host_first(host: Any, ipu: Any) -> None:
    """Checks that the host's part precedes the IPU's."""
    if edge := find_edge(ipu, host):
        source, target = edge
        raise ValueError(
            f"Please place {source} on CPU, a complete header of the graph must be there: the excluded node "
            f"{target} needs it. Add it to excluded_nodes, or do not exclude {target}."
        )


def find_edge(sender: Any, receiver: Any) -> tuple[str, str] | None:
    """Returns the names of the first two nodes, one in each part, with an edge from sender to receiver."""
    sources = {node.name for node in sender.node}
    edges = ((graph_nodes.node_name(name), node.name) for node in receiver.node for name in node.input)
    return next((edge for edge in edges if edge[0] in sources), None)


def remove_host_part(graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
    """Returns the graph without its host's part, whose results become inputs."""
    ipu, host = split_graph(graph_def)
    check_host_first(host, ipu)
    hosts, result = graph_nodes.nodes_by_name(host), type(graph_def)()
    result.CopyFrom(ipu)
    for node in result.node:
        node.input[:] = [name for name in node.input if not (name.startswith("^") and name[1:] in hosts)]
    signature = meta_graph_pb2.SignatureDef(method_name=signature_def.method_name)
    for key, info in signature_def.outputs.items():
        if graph_nodes.node_name(info.name) in hosts:
            raise ValueError(
                f"The model's output {key!r} is {info.name}, which excluded_nodes has on the host: it cannot be "
                "removed. Leave remove_excluded_nodes out, or do not exclude it."
            )
        signature.outputs[key].CopyFrom(info)
    keys = {info.name: key for key, info in signature_def.inputs.items()}
    for tensor in find_crossings(host, ipu):
        node, index = graph_nodes.parse_tensor(tensor)
        placeholder = _make_placeholder(hosts[node], index)
        for user in result.node:
            user.input[:] = [
                placeholder.name if graph_nodes.parse_tensor(name) == (node, index) else name for name in user.input
            ]
        result.node.append(placeholder)
        info = signature.inputs[keys.get(tensor, placeholder.name)]
        info.name, info.dtype = f"{placeholder.name}:0", placeholder.attr["dtype"].type
        info.tensor_shape.CopyFrom(placeholder.attr["shape"].shape)
    return result, signature


def _make_placeholder(node: Any, index: int) -> Any:
    if node.op == "Placeholder":
        return node
    name = f"{node.name}_{index}" if index else node.name
    placeholder = node_def_pb2.NodeDef(name=name, op="Placeholder")
    placeholder.attr["dtype"].type = node_types.output_dtypes(node)[index]
    shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else []
    unknown = tensor_shape_pb2.TensorShapeProto(unknown_rank=True)
    placeholder.attr["shape"].shape.CopyFrom(shapes[index] if index < len(shapes) else unknown)
    return placeholder
