"""Finds nodes and tensors by name in a GraphDef: producers, consumers, ancestors, signature tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

# A tensor: the node that computes it, and which of its outputs it is.
Tensor = tuple[str, int]


def is_control(name: str) -> bool:
    """Returns whether a node's input is a control input."""
    return name.startswith("^")


def parse_tensor(name: str) -> Tensor:
    """Returns the tensor that a node's input names.

    Example:
        >>> parse_tensor("scope/add"), parse_tensor("split:1"), parse_tensor("^assert")
        (('scope/add', 0), ('split', 1), ('assert', 0))
    """
    node, colon, index = name.lstrip("^").rpartition(":")
    return (node, int(index)) if colon else (index, 0)


def node_name(name: str) -> str:
    """Returns the node that a node's input, or the name of a tensor, names.

    Example:
        >>> node_name("split:1"), node_name("^assert")
        ('split', 'assert')
    """
    return parse_tensor(name)[0]


def format_input(tensor: Tensor) -> str:
    """Returns a tensor as a GraphDef writes it; the reverse of `parse_tensor`.

    Example:
        >>> format_input(("split", 1)), format_input(("add", 0))
        ('split:1', 'add')
    """
    node, index = tensor
    return f"{node}:{index}" if index else node


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Returns whether one of some regular expressions is found in a node's name.

    Example:
        >>> matches("encoder/MatMul_1", ["MatMul$"]), matches("encoder/MatMul_1", ["^encoder/"])
        (False, True)
    """
    return any(re.search(pattern, name) for pattern in patterns)


def nodes_by_name(graph_def: Any) -> dict[str, Any]:
    """Returns the nodes of a GraphDef by their names, in its order."""
    return {node.name: node for node in graph_def.node}


def ancestors(nodes: dict[str, Any], names: Iterable[str]) -> set[str]:
    """Returns the named nodes and all that they need, control inputs included; names without a node are left out."""
    visited: set[str] = set()
    pending = [name for name in names if name in nodes]
    while pending:
        name = pending.pop()
        if name not in visited:
            visited.add(name)
            pending += [node_name(input_name) for input_name in nodes[name].input if node_name(input_name) in nodes]
    return visited


def subgraph(graph_def: Any, names: set[str]) -> Any:
    """Returns a GraphDef of some of another's nodes, with its versions and functions."""
    part = type(graph_def)()
    part.versions.CopyFrom(graph_def.versions)
    part.library.CopyFrom(graph_def.library)
    part.node.extend(node for node in graph_def.node if node.name in names)
    return part


def signature_tensors(signature_def: Any) -> list[str]:
    """Returns the names of the tensors that a signature accepts and returns, sorted by key."""
    return [*input_tensors(signature_def), *output_tensors(signature_def)]


def input_tensors(signature_def: Any) -> list[str]:
    """Returns the names of a signature's input tensors, sorted by key."""
    return [_dense_name(signature_def.inputs[key], key) for key in sorted(signature_def.inputs)]


def output_tensors(signature_def: Any) -> list[str]:
    """Returns the names of a signature's output tensors, sorted by key."""
    return [_dense_name(signature_def.outputs[key], key) for key in sorted(signature_def.outputs)]


def check_patterns(patterns: Any, argument: str, error: type[Exception] = ValueError) -> Sequence[str]:
    """Returns an argument that is a list of regular expressions; nothing for None."""
    if patterns is None:
        return []
    if not isinstance(patterns, list):
        word = "must" if error is TypeError else "should"
        raise error(f"{argument} {word} be a list, not {type(patterns).__name__}: give regular expressions in a list.")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as wrong:
            raise error(f"{argument} holds {pattern!r}, which is not a regular expression: {wrong}.") from wrong
    return patterns


def check_pattern_lists(patterns: list[Any], argument: str) -> None:
    """Refuses lists that are not lists of regular expressions."""
    for entry in patterns:
        if not isinstance(entry, list) or not all(isinstance(pattern, str) for pattern in entry):
            raise TypeError(
                f"{argument} must only contain lists of strings, but has {entry!r}: give lists of regular expressions."
            )
        check_patterns(entry, argument)


def _dense_name(info: Any, key: str) -> str:
    if info.WhichOneof("encoding") != "name":
        raise ValueError(
            f"The signature's {key!r} is a {info.WhichOneof('encoding')}: only dense tensors can be converted. Export "
            "the model with a signature of dense tensors."
        )
    return str(info.name)
