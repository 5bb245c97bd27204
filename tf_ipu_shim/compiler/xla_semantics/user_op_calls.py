"""Sets the chip of users' Poplar ops before planning, and adds their custom calls to XLA programs after it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.custom_calls import callers_of, rewrite_functions
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.location import ALL_IPUS
from tf_ipu_shim.compiler.ir.node_defs import copy_node, result_index
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.xla_semantics import user_ops
from tf_ipu_shim.poplar_sdk.op_calls import target_suffix
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_SAME_VALUES = vocabulary.VIEWS | {"Cast", "Transpose"}
"""Ops whose operand is laid out for the ops that use their result."""
_SAME_PLACES = _SAME_VALUES | {
    *("Abs", "Add", "AddV2", "BiasAdd", "Elu", "Erf", "Exp", "Log", "Maximum", "Minimum", "Mul", "Neg", "RealDiv"),
    *("Relu", "ReluGrad", "Rsqrt", "Sigmoid", "SigmoidGrad", "Sqrt", "Square", "Sub", "Tanh", "TanhGrad"),
}
"""Ops whose result lies on the tiles as their first operand, if they have one shape."""
_SOURCES = {vocabulary.READ_VARIABLE, vocabulary.INTER_COPY, vocabulary.INFEED_DEQUEUE, *vocabulary.INFEEDS}


def set_targets(functions: Functions, target: str, num_ipus: int) -> None:
    """Names the chips that users' Poplar ops are built for, and keeps the ops' names and order through inlining.

    An op of a stage on all IPUs is built for the IPUs of a replica, the others for one.
    """
    unvisited = functions.with_ops(vocabulary.USER_OPS)
    if not unvisited:
        return
    reached = functions.reached()  # the entry first, and last what only ops call that nothing needs
    places = itertools.chain.from_iterable(_user_ops_in_order(functions, name, unvisited) for name in reached)
    order = {place: index for index, place in enumerate(places)}
    origins = dict(itertools.chain.from_iterable(_origins(functions[name], order) for name in reached))
    used = {int(origin.partition(".")[0]) for inputs in origins.values() for origin in inputs if "." in origin}

    def set_in(name: str) -> None:
        annotations = functions[name].annotations

        def with_target(node: Node) -> list[node_def_pb2.NodeDef] | None:
            if node.op not in vocabulary.USER_OPS:
                return None
            copy = copy_node(node.proto)
            ipus = num_ipus if annotations.get(node.name) is ALL_IPUS else 1
            place = order[name, node.name]
            suffix = target_suffix(ipus, place if place in used else -1, origins[name, node.name])
            copy.attr["target"].s = f"{target} {suffix}".encode() if target else b""
            copy.attr["debug_name"].s = copy.attr["debug_name"].s or copy.name.encode()
            copy.attr[vocabulary.BUILD_ORDER_ATTRIBUTE].i = place
            return [copy]

        functions[name].rewrite(with_target)

    for name in reached:
        if not functions[name].ops.isdisjoint(vocabulary.USER_OPS):
            set_in(name)


def _user_ops_in_order(functions: Functions, name: str, unvisited: set[str]) -> Iterator[tuple[str, str]]:
    """Yields function and name of the user ops in a function and its callees, as the script made them."""
    if name not in unvisited:
        return
    unvisited.remove(name)
    graph = functions[name]
    traced = () if graph.source is None else graph.source.node_def
    place = {proto.name: index for index, proto in enumerate(traced)}
    for node in sorted(graph.nodes, key=lambda node: place.get(node.name, len(place))):
        if node.op in vocabulary.USER_OPS:
            yield name, node.name
        for called in op_types.called_functions(node.proto):
            yield from _user_ops_in_order(functions, called, unvisited)


def _origins(
    function: FunctionGraph, order: Mapping[tuple[str, str], int]
) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yields function and name of each user op, and where its inputs come from, as `target_suffix` takes it."""
    for node in function.nodes:
        if node.op in vocabulary.USER_OPS:
            inputs = zip(node.producers, node.inputs)
            yield (function.name, node.name), [_origin(function, *each, order) for each in inputs]


def _origin(function: FunctionGraph, producer: Node | None, tensor: str, order: Mapping[tuple[str, str], int]) -> str:
    source, tensor, is_computed = _source(producer, tensor)
    if source is not None and source.op in vocabulary.USER_OPS:
        return f"{order[function.name, source.name]}.{result_index(tensor)}"
    if not is_computed and not _computes(source):
        return "a"
    location = None if producer is None else function.annotations.get(producer.name)
    shard = None if location is None else location.shard
    return "c" if shard is None else f"c{shard}"


def _source(producer: Node | None, tensor: str) -> tuple[Node | None, str, bool]:
    """Returns the op that a tensor's places come from, its result, and whether ops on the way compute."""
    is_computed = False
    while producer is not None and producer.inputs and producer.op in _SAME_PLACES:
        is_computed = is_computed or producer.op not in _SAME_VALUES
        tensor, producer = producer.inputs[0], producer.producers[0]
    return producer, tensor, is_computed


def _computes(source: Node | None) -> bool:
    if source is None or not source.inputs or source.op in _SOURCES:
        return False
    return not op_types.called_functions(source.proto)


def compile_user_ops(program: LoweredProgram) -> LoweredProgram:
    """Returns the program whose XLA programs call users' Poplar ops."""
    functions = {function.signature.name: function for function in program.functions}
    having = (name for name, function in functions.items() if any(user_ops.user_ops_in(function.node_def)))

    def change(function: function_pb2.FunctionDef, _: str) -> None:
        user_ops.replace_user_ops(function)

    return rewrite_functions(program, callers_of(having, functions), change, may_fail=True)
