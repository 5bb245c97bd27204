"""Finds counters of loops over several IPUs that only the loop uses: an IPU's repeat loop does not store them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.node_defs import data_inputs, producer_name
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_ADDS = frozenset({"Add", "AddV2"})


def find_counters(
    body: function_pb2.FunctionDef, library: Mapping[str, function_pb2.FunctionDef]
) -> Iterator[tuple[str, str]]:
    """Yields function and op of each addition of a constant to a loop variable that nothing else uses.

    Nothing for loops on one IPU.

    Args:
        body: a loop's iteration as emitted, with a launch for each XLA program.
        library: all functions by name.
    """
    launches = {node.name: node for node in body.node_def if node.op == vocabulary.LAUNCH}
    if len({launch.attr[vocabulary.CHIP_ATTRIBUTE].i for launch in launches.values()}) < 2:
        return
    uses = Counter(name for node in body.node_def for name in data_inputs(node))
    for argument, output in zip(body.signature.input_arg, body.signature.output_arg):
        node_name, _, place = body.ret[output.name].partition(":results:")
        if node_name not in launches or uses[argument.name] != 1:
            continue
        launch = launches[node_name]
        inputs = data_inputs(launch)
        if argument.name in inputs:
            function = library[launch.attr["function"].func.name]
            added = _addition(function, inputs.index(argument.name), int(place))
            if added:
                yield function.signature.name, added


def _addition(function: function_pb2.FunctionDef, index: int, result: int) -> str:
    """Returns the op that computes a result from an argument that no other op uses; empty if there is none."""
    nodes = {node.name: node for node in function.node_def}
    argument = function.signature.input_arg[index].name
    uses = Counter(name for node in function.node_def for name in data_inputs(node))
    node = _source(nodes, function.ret[function.signature.output_arg[result].name])
    if node is None or node.op not in _ADDS or uses[argument] != 1:
        return ""
    operands = data_inputs(node)
    others = [_source(nodes, name) for name in operands if name != argument]
    is_counter = argument in operands and len(others) == 1 and others[0] is not None and others[0].op == "Const"
    return node.name if is_counter else ""


def _source(nodes: Mapping[str, node_def_pb2.NodeDef], tensor: str) -> node_def_pb2.NodeDef | None:
    """Returns the op that computes a tensor, without identities; None for an argument."""
    node = nodes.get(producer_name(tensor))
    while node is not None and node.op == "Identity":
        node = nodes.get(producer_name(node.input[0]))
    return node
