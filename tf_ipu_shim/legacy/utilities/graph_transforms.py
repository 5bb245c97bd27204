"""Implements the transforms of TensorFlow 1.15's `tensorflow.tools.graph_transforms` that IPU scripts use.

Uses `graph_util` and grappler; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim import errors
from tf_ipu_shim.tf_private.graphs import tf_optimizer
from tf_ipu_shim.tf_private.protos import config_pb2, rewriter_config_pb2

__all__ = ["TransformGraph"]

_CALL = re.compile(r"\s*([a-z_0-9]+)\s*(?:\((.*)\))?\s*$", re.DOTALL)


def TransformGraph(  # noqa: N802  # TensorFlow's name
    input_graph_def: Any, inputs: Sequence[str], outputs: Sequence[str], transforms: Sequence[str]
) -> Any:
    """Applies transforms to a graph, one after another.

    Source: `tensorflow.tools.graph_transforms.TransformGraph`.

    Example:
        >>> with tf.Graph().as_default() as graph:
        ...     x = tf.compat.v1.placeholder(tf.float32, [], name="x")
        ...     y = tf.add(tf.identity(x), 1.0, name="y")
        >>> transforms = ["remove_nodes(op=Identity)", "strip_unused_nodes"]
        >>> made = TransformGraph(graph.as_graph_def(), ["x"], ["y"], transforms)
        >>> sorted(node.op for node in made.node)
        ['AddV2', 'Const', 'Placeholder']
    """
    graph_def = type(input_graph_def)()
    graph_def.CopyFrom(input_graph_def)
    fed, fetched = ([name.split(":")[0] for name in names] for names in (inputs, outputs))
    for transform_call in transforms:
        match = _CALL.match(transform_call)
        if match is None:
            raise ValueError(
                f"{transform_call!r} is not a transform; expected a name, and its arguments in brackets. "
                "Write NAME(argument=value)."
            )
        name, options = match.group(1), _parse_options(match.group(2) or "", transform_call)
        if name not in _TRANSFORMS:
            raise errors.UnsupportedError(
                f"TransformGraph: {name!r} is not emulated, only {', '.join(sorted(_TRANSFORMS))}, which published "
                "scripts for IPUs use. Do it before, with the TensorFlow 1.15 that made the graph."
            )
        graph_def = _TRANSFORMS[name](graph_def, fed, fetched, options)
    return graph_def


def _parse_options(arguments: str, transform: str) -> list[tuple[str, str]]:
    pairs = []
    for part in filter(None, (piece.strip() for piece in arguments.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(
                f"{transform!r}: {part!r} is not an argument of the form name=value. Write it as name=value."
            )
        pairs.append((key.strip(), value.strip().strip("\"'")))
    return pairs


def _strip_unused(graph_def: Any, fed: list[str], fetched: list[str], options: list[tuple[str, str]]) -> Any:
    """Keeps only the ops that the outputs need, up to the inputs."""
    nodes = {node.name: node for node in graph_def.node}
    reachable: set[str] = set()
    pending = list(fetched)
    while pending:
        name = pending.pop()
        if name in reachable:
            continue
        reachable.add(name)
        if name not in fed:
            pending += [_node_name(input_name) for input_name in nodes[name].input]
    return _subgraph(graph_def, reachable)


def _remove_nodes(graph_def: Any, fed: list[str], fetched: list[str], options: list[tuple[str, str]]) -> Any:
    """Without the nodes of some ops that pass on their only input."""
    ops = {value for key, value in options if key == "op"}
    # Something that only runs after such a node still has to: the node stays.
    waited_for = {name[1:] for node in graph_def.node for name in node.input if name.startswith("^")}
    protected = waited_for.union(fed, fetched)
    removed = [node for node in graph_def.node if node.op in ops and node.name not in protected]
    passing = {
        node.name: node.input[0] for node in removed if len(node.input) == 1 and not node.input[0].startswith("^")
    }
    result = _subgraph(graph_def, {node.name for node in graph_def.node} - set(passing))
    for node in result.node:
        node.input[:] = [_skip_removed(name, passing) for name in node.input]
    return result


def _skip_removed(name: str, passing: dict[str, str]) -> str:
    """Returns the input that remains when pass-through nodes are removed."""
    while _node_name(name) in passing:
        name = passing[_node_name(name)]
    return name


def _fold_constants(graph_def: Any, fed: list[str], fetched: list[str], options: list[tuple[str, str]]) -> Any:
    """Replaces expressions of constants by constants."""
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(graph_def, name="")
        meta = v1.train.export_meta_graph(graph_def=graph.as_graph_def(add_shapes=True), graph=graph)
    protected = meta.collection_def["train_op"].node_list.value
    protected.extend(dict.fromkeys([*fed, *fetched]))
    config = config_pb2.ConfigProto()
    rewriter = config.graph_options.rewrite_options
    rewriter.optimizers.append("constfold")
    rewriter.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    rewriter.min_graph_nodes = -1
    return tf_optimizer.OptimizeGraph(config, meta)


def _sort_by_execution_order(graph_def: Any, fed: list[str], fetched: list[str], options: list[tuple[str, str]]) -> Any:
    """Sorts the nodes so that each follows its inputs."""
    nodes = {node.name: node for node in graph_def.node}
    order: dict[str, None] = {}
    for first in nodes:
        pending = [(first, False)]
        while pending:
            name, ready = pending.pop()
            if ready:
                order[name] = None
            elif name not in order:
                pending.append((name, True))
                pending += [
                    (_node_name(input_name), False)
                    for input_name in nodes[name].input
                    if _node_name(input_name) not in order
                ]
    result = _subgraph(graph_def, set())
    result.node.extend(nodes[name] for name in order)
    return result


def _subgraph(graph_def: Any, names: set[str]) -> Any:
    result = type(graph_def)()
    result.CopyFrom(graph_def)
    del result.node[:]
    result.node.extend(node for node in graph_def.node if node.name in names)
    return result


def _node_name(name: str) -> str:
    return name.lstrip("^").split(":")[0]


_TRANSFORMS: dict[str, Callable[[Any, list[str], list[str], list[tuple[str, str]]], Any]] = {
    "strip_unused_nodes": _strip_unused,
    "remove_nodes": _remove_nodes,
    "fold_constants": _fold_constants,
    "sort_by_execution_order": _sort_by_execution_order,
}
