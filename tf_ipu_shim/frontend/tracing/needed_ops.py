"""Finds the ops that the results of a TensorFlow 1 loop body or branch need: stock XLA compiles no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.tf_private import functions as tf_functions
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import func_graph, ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2


def required_ops(graph: func_graph.FuncGraph, roots: Iterable[ops.Operation]) -> set[ops.Operation]:
    """Returns ops of a graph, and all ops whose values they use or that they wait for."""
    needed: set[ops.Operation] = set()
    pending = [op for op in roots if op.graph is graph]
    while pending:
        op = pending.pop()
        if op not in needed:
            needed.add(op)
            pending.extend([*(tensor.op for tensor in op.inputs), *op.control_inputs])
    return needed


def note_needed(graph: func_graph.FuncGraph, roots: Iterable[ops.Operation]) -> None:
    """Notes that a body or branch needs ops, in addition to those noted before."""
    graph._ipu_roots = [*getattr(graph, "_ipu_roots", ()), *roots]
    graph._ipu_needed = required_ops(graph, graph._ipu_roots)
    record_waits(graph)


def record_waits(graph: Any) -> None:
    """Notes which ops wait for others so far: waits added later to order side effects make no op needed."""
    for op in graph.get_operations():
        names = [control.name.encode() for control in op.control_inputs]
        if names or vocabulary.WAITS_ATTRIBUTE in op.node_def.attr:
            waits = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=names))
            tf_graphs.set_attr(op, vocabulary.WAITS_ATTRIBUTE, waits)


def is_needed(op: ops.Operation) -> bool:
    """Returns whether the results of an op's graph need the op; always True outside TensorFlow 1."""
    return not is_pruned(op.graph) or op in op.graph._ipu_needed


def is_pruned(graph: Any) -> bool:
    """Returns whether a graph runs only the ops that its results need."""
    return hasattr(graph, "_ipu_needed")


def needs_input(op: ops.Operation, index: int) -> bool:
    """Returns whether an op needs one of its inputs: conds of TensorFlow 1 do if results of a branch need it."""
    if op.type not in vocabulary.BRANCHES or not index:
        return True
    functions = tf_graphs.functions_by_name(op.graph)
    graphs: list[Any] = [tf_functions.source_graph(functions[name]) for name in op_types.called_functions(op.node_def)]
    arguments = [graph.inputs[index - len(op.inputs)] for graph in graphs]
    return any(not is_pruned(tensor.graph) or is_argument_needed(tensor) for tensor in arguments)


def is_argument_needed(argument: Any) -> bool:
    """Returns whether the results of a branch of TensorFlow 1 need one of its arguments."""
    return any(
        tensor is argument and needs_input(user, index)
        for user in argument.consumers()
        if is_needed(user)
        for index, tensor in enumerate(user.inputs)
    )
