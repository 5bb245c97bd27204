"""Represents a function as a graph that all compiler passes read and change.

A FunctionDef becomes nodes and edges once. Passes replace ops and add new ones. At the end the result is written from
it. Ops that no result needs, and that need not run, are left out. A node keeps its `NodeDef`: an unchanged one is never
copied. A tensor is named as in a FunctionDef: `"argument"`, or `"node:output:index"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_ipu_shim.compiler.ir import op_types, sharding_annotations, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

if TYPE_CHECKING:
    from tf_ipu_shim.compiler.ir.location import Location
    from tf_ipu_shim.compiler.ir.trips import Trips


class Chunks(NamedTuple):
    """A loop's condition and body for execution in chunks of iterations.

    Args:
        cond: name of the function with the condition of the loop over chunks.
        trips: how many iterations there are.
    """

    cond: str
    body: str
    trips: Trips

    @property
    def functions(self) -> tuple[str, str]:
        """Both function names."""
        return self.cond, self.body


class Node:
    """One op of a function.

    Attributes:
        index: its place in topological order.
        name: the op's name in the user's graph.
        op: its type, such as `MatMul`.
        proto: its `NodeDef`. It may be the request's: a pass that changes an op replaces it.
        inputs: its input tensors, in order.
        producers: for each input the node that makes it; None for an argument of the function.
        controls: the nodes that must have run before.
        users: the nodes that use one of its outputs, or wait for it, in topological order.
        chunks: for a loop that runs in chunks: their functions.
    """

    __slots__ = ("chunks", "controls", "index", "inputs", "name", "op", "producers", "proto", "users")

    def __init__(self, index: int, proto: Any) -> None:
        self.index = index
        self.name: str = proto.name
        self.op: str = proto.op
        self.proto = proto
        self.inputs: list[str] = []
        self.producers: list[Node | None] = []
        self.controls: list[Node] = []
        self.users: list[Node] = []
        self.chunks: Chunks | None = None

    def predecessors(self) -> Iterator[Node]:
        """Yields nodes that must run before this one (data or control); one may appear twice."""
        for producer in self.producers:
            if producer is not None:
                yield producer
        yield from self.controls

    @property
    def function_inputs(self) -> list[str]:
        """Inputs that the functions of a loop, branch or call receive: all but a branch's predicate."""
        return self.inputs[1:] if self.op in vocabulary.BRANCHES else self.inputs

    def __repr__(self) -> str:
        return f"{self.name} ({self.op})"


class Result(NamedTuple):
    """A function's result: its name, dtype and the returned tensor."""

    name: str
    type: int
    tensor: str


# For a node the ops that take its place: the last one has its name. None where it stays.
Rule = Callable[[Node], "Sequence[node_def_pb2.NodeDef] | None"]


class FunctionGraph:
    """A function's arguments, its nodes in topological order, and its results.

    Args:
        arguments: argument name to `DataType`, in order.
        protos: the ops, in any order.
        results: its returned tensors, in order.
        control_results: names of the ops that must run although no result needs them.
        traced: the traced function that a pass made it of; itself when left out.

    Attributes:
        nodes: the nodes in topological order, otherwise in the order of `protos`.
        ops: types of all its ops, also of unneeded ones.
        annotations: the marks of ops, by op name, also of unneeded ops.
        control_returns: nodes that must run although no result needs them.
        source: the FunctionDef that it was parsed from; None if a pass made it.

    Raises:
        ValueError: the function has a cycle, or an input that names nothing.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, int],
        protos: Iterable[node_def_pb2.NodeDef],
        results: Iterable[Result],
        control_results: Iterable[str],
        traced: str = "",
    ) -> None:
        self.name = name
        self.traced = traced or name
        self.arguments = dict(arguments)
        self.results = list(results)
        self.argument_attributes: Mapping[int, Any] = {}
        self.annotations: dict[str, Location] = {}
        self.ops: set[str] = set()
        self.called: dict[str, None] = {}
        self.source: function_pb2.FunctionDef | None = None
        self._types: dict[str, dict[str, list[int]]] = {}
        protos_by_name = self._index_ops(protos)
        control_results = list(control_results)
        self._by_name: dict[str, Node] = {}
        self.nodes: list[Node] = []
        self._sort(protos_by_name, {result.tensor.split(":", 1)[0] for result in self.results}.union(control_results))
        self.control_returns: list[Node] = [self._by_name[control] for control in control_results]

    @classmethod
    def parse(cls, definition: function_pb2.FunctionDef) -> FunctionGraph:
        """Parses a FunctionDef without changing it."""
        signature = definition.signature
        graph = cls(
            signature.name,
            {argument.name: argument.type for argument in signature.input_arg},
            definition.node_def,
            [Result(result.name, result.type, definition.ret[result.name]) for result in signature.output_arg],
            [definition.control_ret[name] for name in signature.control_output],
        )
        graph.source = definition
        graph.argument_attributes = definition.arg_attr
        return graph

    def _index_ops(self, protos: Iterable[node_def_pb2.NodeDef]) -> dict[str, node_def_pb2.NodeDef]:
        """Returns the ops by name and records the op types in use."""
        protos_by_name: dict[str, node_def_pb2.NodeDef] = {}
        for proto in protos:
            name, op = proto.name, proto.op
            protos_by_name[name] = proto
            self.ops.add(op)
            if op in vocabulary.FUNCTION_ATTRIBUTES:
                self.called.update(dict.fromkeys(op_types.called_functions(proto)))
            shard = sharding_annotations.shard_of(proto)
            if shard is not None:
                self.annotations[name] = shard
        return protos_by_name

    def _sort(self, protos: Mapping[str, Any], roots: set[str]) -> None:
        """Creates the nodes that the roots need, in topological order."""
        done = self._by_name
        renamed_inputs: dict[str, list[str]] = {}  # what ops that wait for others take
        for root in [name for name in protos if name in roots]:
            stack = [(root, False)]
            while stack:
                name, ready = stack.pop()
                if name in done:
                    continue
                proto = protos[name]
                tensor_names = renamed_inputs[name] if ready else list(proto.input)
                if not ready:
                    missing = [
                        input_op for input_op in self._input_ops(proto, tensor_names, protos) if input_op not in done
                    ]
                    if missing:
                        if name in renamed_inputs:
                            raise ValueError(_cycle_message(self.name, name, protos))
                        renamed_inputs[name] = tensor_names
                        stack.append((name, True))
                        stack.extend([(input_op, False) for input_op in reversed(missing)])
                        continue
                node = Node(len(self.nodes), proto)
                self._connect(node, tensor_names)
                self.nodes.append(node)
                done[name] = node

    def _input_ops(self, proto: Any, tensor_names: Iterable[str], protos: Mapping[str, Any]) -> list[str]:
        """Returns the ops that an op has as data or control inputs."""
        names = []
        for tensor_name in tensor_names:
            name = tensor_name[1:] if tensor_name[0] == "^" else tensor_name.partition(":")[0]
            if name in protos:
                names.append(name)
            elif name not in self.arguments:
                raise ValueError(
                    f"Op {proto.name} of function {self.name} has the input {tensor_name!r}; expected the name of "
                    "an op or an argument. Correct the graph definition."
                )
        return names

    def _connect(self, node: Node, tensor_names: Iterable[str]) -> None:
        """Resolves a node's inputs by name."""
        nodes_by_name = self._by_name
        before: dict[Node, None] = {}  # data first, as `predecessors` has them
        for tensor_name in tensor_names:
            if tensor_name[0] == "^":
                control = nodes_by_name.get(tensor_name[1:])
                if control is not None:
                    node.controls.append(control)
                elif tensor_name[1:] not in self.arguments:
                    raise ValueError(
                        f"Op {node.name} is part of a cycle through {tensor_name[1:]}; expected none. "
                        "Remove it from the graph definition."
                    )
                continue
            node.inputs.append(tensor_name)
            name, is_op, _ = tensor_name.partition(":")
            producer = nodes_by_name.get(name) if is_op else None
            node.producers.append(producer)
            if producer is not None:
                before[producer] = None
            elif is_op:
                raise ValueError(
                    f"Op {node.name} is part of a cycle through {tensor_name}; expected none. Remove "
                    "it from the graph definition."
                )
        if node.controls:
            before.update(dict.fromkeys(node.controls))
        for predecessor in before:
            predecessor.users.append(node)

    @property
    def returns(self) -> list[str]:
        """The returned tensors' names, in order."""
        return [result.tensor for result in self.results]

    @property
    def return_types(self) -> list[int]:
        """The dtypes of the results, in order."""
        return [result.type for result in self.results]

    def producer(self, tensor: str) -> Node | None:
        """Returns the node that computes a tensor; None for an argument."""
        return self._by_name.get(tensor.split(":", 1)[0]) if ":" in tensor else None

    def needed(
        self,
        tensors: Iterable[str],
        nodes: Iterable[Node] = (),
        awaits: Callable[[Node, Node], bool] = lambda node, control: True,
    ) -> set[Node]:
        """Returns nodes, the producers of tensors, and what these need; of control inputs only those that count."""
        pending = [producer for producer in map(self.producer, tensors) if producer is not None]
        pending += nodes
        needed: set[Node] = set()
        while pending:
            node = pending.pop()
            if node not in needed:
                needed.add(node)
                pending.extend(producer for producer in node.producers if producer is not None)
                pending.extend(control for control in node.controls if awaits(node, control))
        return needed

    def type_of(self, tensor: str) -> int:
        """Returns a tensor's dtype."""
        if ":" not in tensor:
            return self.arguments[tensor]
        name, output, index = tensor.split(":")
        types = self._types.get(name)
        if types is None:
            types = self._types[name] = op_types.output_types(self._by_name[name].proto)
        return types[output][int(index)]

    def rewrite(
        self,
        rule: Rule,
        before: Sequence[node_def_pb2.NodeDef] = (),
        after: Sequence[node_def_pb2.NodeDef] = (),
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        """Replaces nodes by other nodes, according to a rule; then replaces tensors by their new names in all users."""
        nodes = [self._add_node(proto) for proto in before]
        touched: dict[Node, None] = {}
        for node in self.nodes:
            replacement = rule(node)
            if renamed:
                replacement = _with_renamed_inputs(node, replacement, renamed)
            if replacement:
                nodes.extend(self._add_node(proto) for proto in replacement[:-1])
                touched.update(dict.fromkeys(self._replace_node(node, replacement[-1])))
            nodes.append(node)
        nodes.extend(self._add_node(proto) for proto in after)
        for index, node in enumerate(nodes):
            node.index = index
        for node in touched:
            node.users.sort(key=lambda user: user.index)
        if renamed:
            self.results = [
                result._replace(tensor=renamed.get(result.tensor, result.tensor)) for result in self.results
            ]
        self.nodes = nodes
        self.ops = {node.op for node in nodes}
        self.called = dict.fromkeys(name for node in nodes for name in op_types.called_functions(node.proto))

    def drop_unused(self, *ops: str) -> None:
        """Removes nodes of these op types if their results are neither used nor returned."""
        live = {result.tensor.partition(":")[0] for result in self.results}
        live.update(node.name for node in self.control_returns)
        remaining: list[Node] = []
        for node in reversed(self.nodes):
            if node.op in ops and not node.users and node.name not in live:
                for predecessor in dict.fromkeys(node.predecessors()):
                    predecessor.users.remove(node)
            else:
                remaining.append(node)
        self.nodes = remaining[::-1]
        for index, node in enumerate(self.nodes):
            node.index = index
        self.ops = {node.op for node in self.nodes}

    def _add_node(self, proto: node_def_pb2.NodeDef) -> Node:
        node = Node(0, proto)
        self._connect(node, proto.input)
        self._by_name[proto.name] = node
        return node

    def _replace_node(self, node: Node, proto: node_def_pb2.NodeDef) -> Iterator[Node]:
        """Replaces a node's op; yields the users whose inputs that changes."""
        for predecessor in dict.fromkeys(node.predecessors()):
            predecessor.users.remove(node)
        node.proto, node.op = proto, proto.op
        node.inputs, node.producers, node.controls = [], [], []
        self._connect(node, proto.input)
        self._types.pop(node.name, None)
        yield from node.predecessors()

    def copy(self, name: str) -> FunctionGraph:
        """Returns a copy under another name that a pass can change."""
        protos, controls = [node.proto for node in self.nodes], [node.name for node in self.control_returns]
        new_graph = FunctionGraph(name, self.arguments, protos, self.results, controls, self.traced)
        new_graph.annotations, new_graph.argument_attributes = self.annotations, self.argument_attributes
        return new_graph

    def write(self, name: str, change: Callable[[Any], None]) -> function_pb2.FunctionDef:
        """Writes the graph as a FunctionDef."""
        definition = function_pb2.FunctionDef()
        signature = definition.signature
        signature.name = name
        for argument, kind in self.arguments.items():
            signature.input_arg.add(name=argument, type=kind)
        for index, attributes in self.argument_attributes.items():
            definition.arg_attr[index].CopyFrom(attributes)
        for result in self.results:
            signature.output_arg.add(name=result.name, type=result.type)
            definition.ret[result.name] = result.tensor
        for node in self.control_returns:
            signature.control_output.append(node.name)
            definition.control_ret[node.name] = node.name
        for node in self.nodes:
            signature.is_stateful = signature.is_stateful or op_types.is_stateful(node.op)
            proto = definition.node_def.add()
            proto.CopyFrom(node.proto)
            if len(proto.input) > len(node.inputs) + len(node.controls):  # an argument is there before anything runs
                proto.input[:] = [
                    tensor_name
                    for tensor_name in proto.input
                    if tensor_name[1:] not in self.arguments or tensor_name[0] != "^"
                ]
            change(proto)
        return definition


def _with_renamed_inputs(
    node: Node, replacement: Sequence[node_def_pb2.NodeDef] | None, renamed: Mapping[str, str]
) -> Sequence[node_def_pb2.NodeDef] | None:
    if not replacement and renamed.keys().isdisjoint(node.inputs):
        return None
    *added, last = replacement or [node.proto]
    inputs = [renamed.get(tensor_name, tensor_name) for tensor_name in last.input]
    return [*added, copy_node(last, inputs)]


def _cycle_message(function: str, name: str, protos: Mapping[str, Any]) -> str:
    if any(proto.op == "NextIteration" for proto in protos.values()):
        label = "a loop of TensorFlow 1 in a function that was made before it was called here"
        return f"Function {function} has {label}. Call it first within what `ipu_compiler.compile` compiles."
    return f"Function {function} has a cycle through {name}."
