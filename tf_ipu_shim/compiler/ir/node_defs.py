"""Parses tensor names, copies NodeDefs and FunctionDefs, and creates constants.

A tensor is named as in a FunctionDef: `"argument"` or `"node:output:index"`; a control input is `"^node"`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, tensor_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util


class TensorName(NamedTuple):
    """The parsed name of a tensor; `output` is empty and `position` 0 for an argument."""

    producer: str
    output: str = ""
    position: int = 0

    @classmethod
    def parse(cls, tensor_name: str) -> TensorName:
        """Parses a data input, also one of a GraphDef (`"node"`, `"node:1"`).

        Example:
            >>> TensorName.parse("split:output:2")
            TensorName(producer='split', output='output', position=2)
        """
        producer, *rest = tensor_name.split(":")
        return cls(producer, rest[0] if len(rest) == 2 else "", int(rest[-1]) if rest else 0)

    def __str__(self) -> str:
        return f"{self.producer}:{self.output}:{self.position}" if self.output else self.producer


def producer_name(tensor_name: str) -> str:
    """Returns the node or argument that a data or control input names."""
    return tensor_name.lstrip("^").partition(":")[0]


def result_index(tensor_name: str) -> int:
    """Returns the index at the end of a node's result."""
    return int(tensor_name.rpartition(":")[2])


def is_argument(tensor_name: str) -> bool:
    """Returns whether a data input is an argument of the function."""
    return ":" not in tensor_name


def with_producer(tensor_name: str, name: str) -> str:
    """Returns the same result of a node that has another name."""
    _, separator, rest = tensor_name.partition(":")
    return name + separator + rest


def is_control(input_name: str) -> bool:
    """Returns whether an input is a control input."""
    return input_name[0] == "^"


def data_inputs(node: node_def_pb2.NodeDef) -> list[str]:
    """Returns the data inputs of a node."""
    return [input_name for input_name in node.input if input_name[0] != "^"]


def control_inputs(node: node_def_pb2.NodeDef) -> list[str]:
    """Returns the control inputs of a node."""
    return [input_name for input_name in node.input if input_name[0] == "^"]


def awaited_nodes(node: node_def_pb2.NodeDef) -> list[str]:
    """Returns the names of a node's control inputs."""
    return [input_name[1:] for input_name in node.input if input_name[0] == "^"]


def copy_node(node: node_def_pb2.NodeDef, inputs: Iterable[str] | None = None) -> node_def_pb2.NodeDef:
    """Returns a copy of a NodeDef, with other inputs if given."""
    copy = node_def_pb2.NodeDef()
    copy.CopyFrom(node)
    if inputs is not None:
        copy.input[:] = inputs
    return copy


def copy_function(
    function: function_pb2.FunctionDef, nodes: Iterable[node_def_pb2.NodeDef] | None = None
) -> function_pb2.FunctionDef:
    """Returns a copy of a FunctionDef, with other nodes if given."""
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    if nodes is not None:
        del copy.node_def[:]
        copy.node_def.extend(nodes)
    return copy


def copy_annotations(source: node_def_pb2.NodeDef, target: node_def_pb2.NodeDef) -> None:
    """Copies a node's annotations, the attributes that begin with an underscore."""
    for name, value in source.attr.items():
        if name.startswith("_") and name != "_output_shapes":
            target.attr[name].CopyFrom(value)


def without_annotations(node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    """Returns a copy of a node without its annotations."""
    copy = copy_node(node)
    for name in [name for name in copy.attr if name.startswith("_")]:
        del copy.attr[name]
    return copy


def constant(name: str, value: Any, dtype: int, like: node_def_pb2.NodeDef | None = None) -> node_def_pb2.NodeDef:
    """Returns a `Const` node of a value or TensorProto, on the device of another node if given."""
    node = node_def_pb2.NodeDef(name=name, op="Const", device="" if like is None else like.device)
    node.attr["dtype"].type = dtype
    proto = value if isinstance(value, tensor_pb2.TensorProto) else tensor_util.make_tensor_proto(value, dtype)
    node.attr["value"].tensor.CopyFrom(proto)
    return node
