"""A FunctionDef as nodes and edges.

Ops that no result needs, and that need not run, are left out. The nodes keep their `NodeDef`: what is not cut is
copied as it stands. A tensor is named as in a FunctionDef: `"argument"`, or `"node:output:index"`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from tensorflow.core.framework import function_pb2

from tf_ipu_shim.lowering import op_types


@dataclasses.dataclass(eq=False)
class Node:
    """One op of a function.

    Args:
        index: its place in topological order.
        proto: its `NodeDef`; not to be changed, it belongs to the request.
        inputs: the tensors it takes, in order.
        producers: for each input the node that makes it; None for an argument of the function.
        controls: the nodes that must have run before.
        users: the nodes that take one of its outputs, or wait for it, in topological order.
    """

    index: int
    proto: Any
    inputs: list[str]
    producers: list[Node | None]
    controls: list[Node]
    users: list[Node] = dataclasses.field(default_factory=list)

    @property
    def name(self) -> str:
        """The op's name in the user's graph."""
        return self.proto.name

    @property
    def op(self) -> str:
        """The op's type, such as `MatMul`."""
        return self.proto.op

    def predecessors(self) -> Iterator[Node]:
        """Nodes that must come before this one, for data or for order; one may appear twice."""
        for producer in self.producers:
            if producer is not None:
                yield producer
        yield from self.controls


class FunctionGraph:
    """A function's arguments, its nodes in topological order, and what it returns.

    Args:
        definition: the function.

    Attributes:
        arguments: argument name to `DataType`, in order.
        nodes: in topological order, otherwise in the order of the definition.
        returns: for each result, in order, the tensor's name.
        control_returns: nodes that must run although no result needs them.

    Raises:
        ValueError: the definition has a cycle, or an input that names nothing.
    """

    def __init__(self, definition: function_pb2.FunctionDef) -> None:
        self.definition = definition
        self.name: str = definition.signature.name
        self.arguments: dict[str, int] = {argument.name: argument.type for argument in definition.signature.input_arg}
        self.nodes: list[Node] = self._sorted_nodes()  # of what is reached from a result, or must run
        self._by_name: dict[str, Node] = {node.name: node for node in self.nodes}
        self.returns: list[str] = [definition.ret[result.name] for result in definition.signature.output_arg]
        self.return_types: list[int] = [result.type for result in definition.signature.output_arg]
        self.control_returns: list[Node] = [
            self._by_name[definition.control_ret[name]] for name in definition.signature.control_output
        ]
        self._types: dict[str, dict[str, list[int]]] = {}

    def _sorted_nodes(self) -> list[Node]:
        protos = {proto.name: proto for proto in self.definition.node_def}
        done: dict[str, Node] = {}
        nodes: list[Node] = []
        for root in self._roots(protos):
            stack = [(root, False)]
            waiting: set[str] = set()
            while stack:
                name, ready = stack.pop()
                if name in done:
                    continue
                proto = protos[name]
                names = [self._producer_name(text, protos, name) for text in proto.input]
                if not ready:
                    missing = [other for other in names if other is not None and other not in done]
                    if missing:
                        if name in waiting:
                            raise ValueError(f"Function {self.name} has a cycle through {name}.")
                        waiting.add(name)
                        stack.append((name, True))
                        stack.extend((other, False) for other in reversed(missing))
                        continue
                nodes.append(self._node(len(nodes), proto, names, done))
                done[name] = nodes[-1]
        return nodes

    def _roots(self, protos: Mapping[str, Any]) -> list[str]:
        """Nodes that make a result or must run, in the order of the definition."""
        definition = self.definition
        named = {text.split(":", 1)[0] for text in definition.ret.values()} | set(definition.control_ret.values())
        return [name for name in protos if name in named]

    def _producer_name(self, text: str, protos: Mapping[str, Any], user: str) -> str | None:
        name = text[1:] if text.startswith("^") else text.split(":", 1)[0]
        if name in protos:
            return name
        if name in self.arguments:
            return None
        raise ValueError(f"Op {user} of function {self.name} takes {text!r}, which names no op and no argument.")

    @staticmethod
    def _node(index: int, proto: Any, names: list[str | None], done: Mapping[str, Node]) -> Node:
        inputs, producers, controls = [], [], []
        for text, name in zip(proto.input, names):
            producer = None if name is None else done.get(name)
            if name is not None and producer is None:
                raise ValueError(f"Op {proto.name} is part of a cycle through {name}.")
            if text.startswith("^"):
                if producer is not None:
                    controls.append(producer)
            else:
                inputs.append(text)
                producers.append(producer)
        node = Node(index, proto, inputs, producers, controls)
        for predecessor in dict.fromkeys(node.predecessors()):
            predecessor.users.append(node)
        return node

    def producer(self, tensor: str) -> Node | None:
        """The node that makes a tensor; None for an argument."""
        return self._by_name.get(tensor.split(":", 1)[0]) if ":" in tensor else None

    def type_of(self, tensor: str) -> int:
        """A tensor's `DataType`."""
        if ":" not in tensor:
            return self.arguments[tensor]
        name, output, index = tensor.split(":")
        types = self._types.get(name)
        if types is None:
            types = self._types[name] = op_types.output_types(self._by_name[name].proto)
        return types[output][int(index)]
