"""Tells what the results of a loop's body or a branch of TensorFlow 1 need: stock XLA compiles nothing else of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.tf_private import functions as tf_functions
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import func_graph, ops


def required_ops(graph: func_graph.FuncGraph, roots: Iterable[ops.Operation]) -> set[ops.Operation]:
    """Returns ops of a graph, and all that they take values from or wait for."""
    needed: set[ops.Operation] = set()
    pending = [op for op in roots if op.graph is graph]
    while pending:
        op = pending.pop()
        if op not in needed:
            needed.add(op)
            pending.extend([*(tensor.op for tensor in op.inputs), *op.control_inputs])
    return needed


def note_results(graph: func_graph.FuncGraph, results: Iterable[Any]) -> None:
    """Notes what a body or branch returns before anything is ordered."""
    graph._ipu_needed = required_ops(graph, [result.op for result in results])


def is_needed(op: ops.Operation) -> bool:
    """Returns whether the results of an op's graph need the op; always True of what is not of TensorFlow 1."""
    needed = getattr(op.graph, "_ipu_needed", None)
    return needed is None or op in needed


def needs_input(op: ops.Operation, index: int) -> bool:
    """Returns whether an op needs one of its inputs: conds of TensorFlow 1 do if results of a branch need it."""
    if op.type not in vocabulary.BRANCHES or not index:
        return True
    functions = tf_graphs.functions_by_name(op.graph)
    graphs: list[Any] = [
        tf_functions.source_graph(functions[name]) for name in op_types.called_functions(op.node_def)
    ]
    arguments = [graph.inputs[index - len(op.inputs)] for graph in graphs]
    return any(not hasattr(tensor.graph, "_ipu_needed") or is_argument_needed(tensor) for tensor in arguments)


def is_argument_needed(argument: Any) -> bool:
    """Returns whether the results of a branch of TensorFlow 1 need one of its arguments."""
    return any(
        tensor is argument and needs_input(user, index)
        for user in argument.consumers()
        if is_needed(user)
        for index, tensor in enumerate(user.inputs)
    )
