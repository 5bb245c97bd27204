"""Sets the unknown batch dimension of a graph's inputs."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.frontend.conversion import graph_nodes

_SHAPES = "_output_shapes"


def set_batch_size(graph_def: Any, signature_def: Any, batch_size: int) -> tuple[Any, Any]:
    """Returns the graph and its signature, with that batch size for inputs whose first axis was open."""
    inputs = {graph_nodes.node_name(name) for name in graph_nodes.input_tensors(signature_def)}
    result, signature = type(graph_def)(), type(signature_def)()
    result.CopyFrom(graph_def)
    signature.CopyFrom(signature_def)
    for node in result.node:
        node.attr.pop(_SHAPES, None)  # they follow from other inputs
        shape = node.attr["shape"].shape if node.name in inputs and "shape" in node.attr else None
        if shape is not None and shape.dim and shape.dim[0].size < 0:
            shape.dim[0].size = batch_size
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(result, name="")
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            info.tensor_shape.CopyFrom(graph.get_tensor_by_name(info.name).shape.as_proto())
    return graph.as_graph_def(add_shapes=True), signature
