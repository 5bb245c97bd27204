"""`ipu_tensorflow_addons.saved_model_tool.converter.gelu_replacement`: replaces GELU subgraphs by the IPU's op."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as v1
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.frontend.conversion import graph_nodes, node_types
from tf_ipu_shim.frontend.ops import nn_ops

_KEYS = ("nodes", "node_as_gelu_input", "node_use_gelu_output")


class GeluReplacement(Converter):
    """Replaces the nodes that compute a GELU by the IPU's op.

    The IPU's GELU uses the hyperbolic tangent instead of the error function (`ipu.nn_ops.gelu`): results differ from
    the exact one by less than 0.001.

    Args:
        param: an `IpuConversionParams`. Its `gelu_replacement` has three lists of regular expressions: `nodes` (of the
            function), `node_as_gelu_input` (its input) and `node_use_gelu_output` (readers).

    Raises:
        ValueError: it is not a dictionary, or lacks one of the lists.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.gelu_replacement.GeluReplacement`.
    """

    def __init__(self, param: Any) -> None:
        config = param.gelu_replacement
        self._replaces = bool(config)
        if not self._replaces:
            return
        if not isinstance(config, dict):
            raise ValueError(f"gelu_replacement should be a dict, not {type(config).__name__}. Pass a dict.")
        if not all(key in config for key in _KEYS):
            raise ValueError(
                f"{', '.join(_KEYS)} must be set; gelu_replacement has {', '.join(config) or 'nothing'}. Add it to "
                "gelu_replacement."
            )
        self._nodes, self._inputs, self._users = (
            graph_nodes.check_patterns(config[key], f"gelu_replacement['{key}']") for key in _KEYS
        )

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`.

        Raises:
            ValueError: no node matches, or a node that reads the function is not connected to one input of it.
        """
        if not self._replaces:
            return graph_def, signature_def
        nodes = graph_nodes.nodes_by_name(graph_def)
        functions: dict[str, Any] = {}
        for user in graph_def.node:
            if not graph_nodes.matches(user.name, self._users):
                continue
            for position, name in enumerate(user.input):
                if graph_nodes.matches(graph_nodes.node_name(name), self._nodes):
                    source = self._source(nodes, graph_nodes.node_name(name), user.name)
                    if source not in functions:
                        functions[source] = _gelu(nodes[source])
                    user.input[position] = functions[source][-1].name
        if not functions:
            raise ValueError(
                "gelu_replacement must name a GELU of this model: no node in node_use_gelu_output reads one "
                "that is in nodes. Correct these names."
            )
        graph_def.node.extend(node for replacement in functions.values() for node in replacement)
        unmatched = [node.name for node in graph_def.node if not graph_nodes.matches(node.name, self._nodes)]
        signed = [graph_nodes.node_name(name) for name in graph_nodes.signature_tensors(signature_def)]
        needed = graph_nodes.ancestors(graph_nodes.nodes_by_name(graph_def), [*unmatched, *signed])
        return graph_nodes.subgraph(graph_def, needed), signature_def

    def _source(self, nodes: dict[str, Any], name: str, user: str) -> str:
        """Returns the only input node of the GELU that ends in a node."""
        sources, seen, pending = set(), set(), [name]
        while pending:
            inside = pending.pop()
            if inside in seen:
                continue
            seen.add(inside)
            for input_name in map(graph_nodes.node_name, nodes[inside].input):
                if graph_nodes.matches(input_name, self._nodes):
                    pending.append(input_name)
                elif graph_nodes.matches(input_name, self._inputs):
                    sources.add(input_name)
                elif nodes[input_name].op not in ("Const", "Identity"):
                    raise ValueError(
                        f"The GELU that {user} reads needs {input_name}, which neither nodes nor node_as_gelu_input "
                        "names. Add it to nodes, or name the input with node_as_gelu_input."
                    )
        if len(sources) != 1:
            raise ValueError(
                f"The GELU that {user} reads is computed of {', '.join(sorted(sources)) or 'nothing'}; "
                "expected one input. Name it with node_as_gelu_input."
            )
        return sources.pop()


def _gelu(source: Any) -> list[Any]:
    """Returns the nodes of the IPU's GELU of a node's first output; the last one is the result."""
    types = node_types.output_dtypes(source)
    if not types or not dtypes.as_dtype(types[0]).is_floating:
        raise ValueError(
            f"{source.name}_gelu can not get type from {source.name}, which gives no floating-point tensor. Choose "
            "nodes of floating-point tensors."
        )
    prefix = f"{source.name}_gelu"
    with v1.Graph().as_default() as graph:
        features = v1.placeholder(types[0], name="features")
        result = nn_ops.gelu(features, name="IpuGelu")
        gelu_nodes = graph.as_graph_def().node
    nodes = []
    for node in gelu_nodes:
        if node.name == "features":
            continue
        node.input[:] = [source.name if name == "features" else f"{prefix}/{name}" for name in node.input]
        node.name = f"{prefix}/{node.name}"
        nodes.append(node)
    nodes.sort(key=lambda node: node.name == f"{prefix}/{result.op.name}")
    return nodes
