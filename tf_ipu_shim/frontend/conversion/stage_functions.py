"""Splits a graph into one function for each pipeline stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tf_ipu_shim.frontend.conversion import graph_nodes, ipu_program

Stage = Callable[..., list[Any]]


@dataclasses.dataclass(frozen=True)
class StagePart:
    """One stage: its input tensors, nodes and output tensors, by their names in the graph.

    Args:
        nodes: the nodes that it computes, with the constants that they need.
        inputs: its arguments, in order.
        outputs: its results, in order.
    """

    nodes: set[str]
    inputs: list[str]
    outputs: list[str]


def split_into_stages(
    graph_def: Any, stages: Mapping[str, int], inputs: Sequence[str], outputs: Sequence[str]
) -> list[StagePart]:
    """Cuts a graph."""
    nodes = graph_nodes.nodes_by_name(graph_def)
    order = sorted(set(stages.values()))
    fed = {graph_nodes.node_name(name) for name in inputs}
    check_forward_only(nodes, stages, fed)
    insides: list[set[str]] = []
    needs: list[list[str]] = []
    for stage in order:
        stage_nodes = {name for name, of in stages.items() if of == stage and name not in fed}
        constants = _shared_constants(nodes, stage_nodes, stages, fed)
        insides.append(stage_nodes | constants)
        needs.append(_external_inputs(nodes, stage_nodes | constants))
    # Outputs that are constants of the graph are computed in the last stage.
    loose = {graph_nodes.node_name(name) for name in outputs} - set(stages) - fed
    insides[-1] |= graph_nodes.ancestors(nodes, loose)
    stage_parts, flowing = [], list(inputs)
    for index, inside in enumerate(insides):
        computed = [tensor for tensor in _read_tensors(nodes, inside, needs, outputs)]
        if index + 1 == len(insides):
            stage_outputs = list(outputs)
        else:
            later = {tensor for need in needs[index + 1 :] for tensor in need} | set(outputs)
            stage_outputs = [tensor for tensor in dict.fromkeys([*flowing, *computed]) if tensor in later]
        stage_parts.append(StagePart(inside, flowing, stage_outputs))
        flowing = stage_outputs
    return stage_parts


def check_forward_only(nodes: Mapping[str, Any], stages: Mapping[str, int], fed: set[str]) -> None:
    """Checks that data only flows to later stages."""
    wrong = [
        f"{name} (stage {stage}) needs {input_name} (stage {stages[input_name]})"
        for name, stage in stages.items()
        if name not in fed
        for input_name in map(graph_nodes.node_name, nodes[name].input)
        if input_name not in fed and stages.get(input_name, 0) > stage
    ]
    if wrong:
        raise ValueError(
            f"The nodes {', '.join(wrong[:3])} are not in topology order: a stage only uses results of earlier stages. "
            "Put them in a later stage, or what they need in an earlier one."
        )


def stage_function(graph_def: Any, part: StagePart) -> Stage:
    """Returns a function that puts a part into the current graph, under the names that it has."""
    subgraph = graph_nodes.subgraph(graph_def, part.nodes)
    computed = {name for name in part.outputs if graph_nodes.node_name(name) in part.nodes}

    def stage(*arguments: Any) -> list[Any]:
        operands = dict(zip(part.inputs, arguments))
        computed_names = [name for name in part.outputs if name in computed]
        results = dict(zip(computed_names, ipu_program.import_part(subgraph, operands, computed_names)))
        return [results[name] if name in computed else operands[name] for name in part.outputs]

    return stage


def _shared_constants(
    nodes: Mapping[str, Any], stage_nodes: set[str], stages: Mapping[str, int], fed: set[str]
) -> set[str]:
    """Constants that a stage's nodes need; each stage has a separate copy."""
    shared: set[str] = set()
    pending = list(stage_nodes)
    while pending:
        for input_name in map(graph_nodes.node_name, nodes[pending.pop()].input):
            if input_name not in stages and input_name not in fed and input_name not in shared:
                shared.add(input_name)
                pending.append(input_name)
    return shared


def _external_inputs(nodes: Mapping[str, Any], inside: set[str]) -> list[str]:
    """Returns the tensors that some nodes read of others."""
    inputs = (
        graph_nodes.parse_tensor(name)
        for node in inside
        for name in nodes[node].input
        if not graph_nodes.is_control(name) and graph_nodes.node_name(name) not in inside
    )
    return [f"{node}:{index}" for node, index in dict.fromkeys(inputs)]


def _read_tensors(
    nodes: Mapping[str, Any], inside: set[str], needs: Sequence[Sequence[str]], outputs: Sequence[str]
) -> list[str]:
    """Returns the tensors of some nodes that other nodes read, in the graph's order."""
    read = {*outputs, *(tensor for need in needs for tensor in need)}
    position_of = {name: position for position, name in enumerate(nodes)}
    mine = [tensor for tensor in read if graph_nodes.node_name(tensor) in inside]
    return sorted(mine, key=lambda tensor: (position_of[graph_nodes.node_name(tensor)], tensor))
