"""Replaces unused resource-handle arguments of loops, branches and calls by constants.

XLA treats each handle that a loop carries as a variable. For an iterator with synthetic elements it would end the
process. A number is given in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import constant, copy_node
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_CALLERS = vocabulary.LOOPS | vocabulary.BRANCHES | vocabulary.CALLS


def replace_unused_handles(functions: Functions) -> None:
    """Makes functions accept a constant instead of each handle that they do not use."""
    graphs = [functions[name] for name in functions.reached()]
    idle = {graph.name: _candidates(graph, _loops_of(graphs)) for graph in graphs}
    idle[functions.entry] = set()  # what the program is given stays what it is
    while any([_narrow(graph, idle) for graph in graphs]):
        pass
    for graph in graphs:
        _declare(graph, idle[graph.name])
    for graph in graphs:
        _replace(graph, idle)


def _loops_of(graphs: Iterable[FunctionGraph]) -> dict[str, set[int]]:
    """Maps each loop body to the loop results that are used."""
    loops: dict[str, set[int]] = {}
    for graph in graphs:
        consumed = {tensor_name for node in graph.nodes for tensor_name in node.inputs}.union(graph.returns)
        for node in graph.nodes:
            if node.op in vocabulary.LOOPS:
                used = {index for index in range(len(node.inputs)) if f"{node.name}:output:{index}" in consumed}
                loops.setdefault(node.proto.attr["body"].func.name, set()).update(used)
    return loops


def _candidates(graph: FunctionGraph, loops: Mapping[str, set[int]]) -> set[int]:
    """Returns the handles that a function returns, if at all, only to the next iteration."""
    indices = set()
    for argument_index, (name, kind) in enumerate(graph.arguments.items()):
        returned = [index for index, tensor_name in enumerate(graph.returns) if tensor_name == name]
        expected = [] if graph.name not in loops else [argument_index]
        if kind == op_types.RESOURCE and returned == expected and argument_index not in loops.get(graph.name, ()):
            indices.add(argument_index)
    return indices


def _passed_arguments(node: Node) -> Iterator[tuple[int, int]]:
    """Yields which inputs of an op are arguments of its functions, with the argument's index."""
    first = 1 if node.op in vocabulary.BRANCHES else 0
    return ((index, index - first) for index in range(first, len(node.inputs)))


def _narrow(graph: FunctionGraph, idle: dict[str, set[int]]) -> bool:
    """Removes handles that an op of this function uses from the candidates; returns whether any was."""
    before = sum(map(len, idle.values()))
    used: set[str] = set()
    for node in graph.nodes:
        used.update(_uses(node, idle) if node.op in _CALLERS else node.inputs)
    idle[graph.name] -= {index for index, name in enumerate(graph.arguments) if name in used}
    return sum(map(len, idle.values())) < before


def _uses(node: Node, idle: dict[str, set[int]]) -> list[str]:
    """Returns the arguments that any function of an op uses."""
    called = [idle.setdefault(name, set()) for name in op_types.called_functions(node.proto)]
    common = set.intersection(*called) if called else set()
    for indices in called:
        indices &= common
    return [node.inputs[index] for index, operand in _passed_arguments(node) if operand not in common]


def _declare(graph: FunctionGraph, idle: set[int]) -> None:
    """Changes the types of a function's unused handle arguments and results to numbers."""
    names = list(graph.arguments)
    graph.arguments.update((names[index], types_pb2.DT_INT32) for index in idle)
    graph.argument_attributes = {
        index: attributes for index, attributes in graph.argument_attributes.items() if index not in idle
    }
    changed = {names[index] for index in idle}
    graph.results = [
        result._replace(type=types_pb2.DT_INT32) if result.tensor in changed else result for result in graph.results
    ]


def _replace(graph: FunctionGraph, idle: dict[str, set[int]]) -> None:
    """Passes constants instead of unused handles to the functions that a function's ops run."""

    def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if node.op not in _CALLERS:
            return None
        called = op_types.called_functions(node.proto)
        replaced_inputs = [
            (index, operand)
            for index, operand in _passed_arguments(node)
            if called and operand in idle.get(called[0], ())
        ]
        if not replaced_inputs:
            return None
        zero = constant(f"{node.name}/no_handle", 0, types_pb2.DT_INT32)
        new_node = copy_node(node.proto)
        for index, operand in replaced_inputs:
            new_node.input[index] = f"{zero.name}:output:0"
            new_node.attr["T" if node.op in vocabulary.LOOPS else "Tin"].list.type[operand] = types_pb2.DT_INT32
        return [zero, new_node]

    graph.rewrite(rule)
