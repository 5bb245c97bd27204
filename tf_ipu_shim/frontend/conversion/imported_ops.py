"""Replaces Graphcore's activation ops in imported graph definitions by TensorFlow ops, and refuses its other ops.

A graph definition only has the op's type and attributes. Other ops, whose functions need the shapes of their inputs,
are therefore refused.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from tensorflow.compat import v1

from tf_ipu_shim import errors, patches
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private.graphs import importer, op_def_registry

_ACTIVATIONS = {
    "IpuGelu": "gelu",
    "IpuHardSigmoid": "hard_sigmoid",
    "IpuSoftmax": "softmax",
    "IpuStableSoftmax": "softmax",
    "IpuSwish": "swish",
}
_GRADIENTS = {"IpuGeluGrad": "gelu", "IpuHardSigmoidGrad": "hard_sigmoid", "IpuSwishGrad": "swish"}
_ARGUMENTS = {**dict.fromkeys(_ACTIVATIONS, 1), **dict.fromkeys(_GRADIENTS, 2)}
_GRAPHCORE = ("Ipu", "IPU", "Pop")  # how its op types begin


def install() -> None:
    """Makes TensorFlow's importer accept these ops, once per process."""
    why = "graph definitions that Graphcore's TensorFlow wrote have its ops"
    patches.replace(importer, "_import_graph_def_internal", _patch_import, why=why)


def _patch_import(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def import_graph_def(graph_def: Any, *arguments: Any, **keywords: Any) -> Any:
        return stock(_replace_ops(graph_def), *arguments, **keywords)

    return import_graph_def


def _replace_ops(graph_def: Any) -> Any:
    """Returns the graph definition itself, or a copy without ops of Graphcore's that TensorFlow does not have."""
    if not any(_is_missing(node.op) for node in getattr(graph_def, "node", ())):
        return graph_def
    result = type(graph_def)()
    result.CopyFrom(graph_def)
    del result.node[:]
    for node in graph_def.node:
        result.node.extend(_expand(node) if _is_missing(node.op) else [node])
    return result


def _is_missing(op: str) -> bool:
    return op.startswith(_GRAPHCORE) and op_def_registry.get(op) is None


def _expand(node: Any) -> list[Any]:
    """Returns the nodes that compute an activation; the last one has the name of the node."""
    data = [name for name in node.input if not name.startswith("^")]
    if len(data) != _ARGUMENTS.get(node.op) or "dtype" not in node.attr:
        raise errors.UnsupportedError(
            f"Import of a graph definition: node {node.name} is Graphcore's op {node.op} with {len(data)} inputs; "
            f"expected ops of TensorFlow, or one of {', '.join(_ARGUMENTS)} with `dtype`. Build this part of the model "
            "in Python, or export it without the op."
        )
    with v1.Graph().as_default() as graph:
        inputs = [v1.placeholder(node.attr["dtype"].type, name=f"input_{i}") for i in range(len(data))]
        v1.identity(_compute(node.op, *inputs), name="result")
    renamed = {"result": node.name, **{tensor.op.name: name for tensor, name in zip(inputs, data)}}
    expanded = [part for part in graph.as_graph_def().node if part.op != "Placeholder"]
    for part in expanded:
        part.input[:] = [_rename_input(name, renamed, node.name) for name in part.input]
        part.input.extend(name for name in node.input if name.startswith("^"))
        part.name = renamed.get(part.name, f"{node.name}/{part.name}")
        part.device = node.device
        part.attr.pop(vocabulary.COLOCATION_ATTRIBUTE, None)  # names its nodes as they were
    return expanded


def _rename_input(name: str, renamed: dict[str, str], prefix: str) -> str:
    if name.startswith("^"):
        return f"^{_rename_input(name[1:], renamed, prefix).partition(':')[0]}"
    return renamed.get(name, f"{prefix}/{name}")


def _compute(op: str, *inputs: Any) -> Any:
    nn_ops = importlib.import_module("tf_ipu_shim.frontend.ops.nn_ops")  # now: few graphs need it
    if op in _ACTIVATIONS:
        return getattr(nn_ops, _ACTIVATIONS[op])(*inputs)
    gradients, features = inputs
    return v1.gradients(getattr(nn_ops, _GRADIENTS[op])(features), features, gradients)[0]
