"""Builds TensorFlow 1 loops and conditionals as functional ops that run only what their results need.

Checked on TensorFlow 2.15.1.

In a loop of TensorFlow 1, the ops that its next values depend on run; in a branch, the ops that its results depend on.
A session leaves out all else, and so does `xla.compile` of stock TensorFlow inside loops and branches (not outside of
them). Functional ones, which XLA needs, run everything with a side effect. Stock TensorFlow's functional ones do so
too, if `tf.while_loop` and `tf.cond` make them. `tf.switch_case` is functional in TensorFlow 1 too, and so is all
control flow in one of its branches and in a `tf.function`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import dtypes, nest
from tensorflow.compat.v2 import while_loop as eager_while_loop

from tf_ipu_shim import patches
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import host_variables, needed_ops, tracing
from tf_ipu_shim.tf_private import control_flow
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.control_flow import cond as stock_cond
from tf_ipu_shim.tf_private.control_flow import cond_v2, control_flow_util, control_flow_util_v2, while_v2
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import func_graph, ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2
from tf_ipu_shim.tf_private.variables import resource_variable_ops

_functional_while_loop = while_v2.while_loop


def install() -> None:
    """Makes TensorFlow 1 loops and branches in programs run only the ops that their results need."""
    why = "loops and branches of TensorFlow 1 run what their values need"
    patches.replace(while_v2, "while_loop", _while_with_session_semantics, why)
    patches.replace(cond_v2, "cond_v2", _cond_with_session_semantics, why)
    patches.replace(control_flow_util, "EnableControlFlowV2", _functional_in_defun, why)
    handles = "the gradient of a loop in a branch reads the loop's variables outside the branch"
    patches.replace(control_flow.BranchGradient, "_capture_helper", _handles_from_outside, handles)


def while_loop(
    condition: Callable[..., Any], body: Callable[..., Any], values: list[Any], maximum_iterations: int | None = None
) -> Any:
    """TensorFlow's own loop, for loops of this package, which order their side effects themselves.

    Outside of functions and graphs Python runs it.
    """
    loop = eager_while_loop if context.executing_eagerly() else _functional_while_loop
    return loop(condition, body, values, maximum_iterations=maximum_iterations)


def has_dataflow_loops() -> bool:
    """Returns whether TensorFlow 1 loops are not functional in the current graph, because a session runs it."""
    graph = ops.get_default_graph()
    if graph.building_function and not tracing.has_session_semantics(graph):
        return False
    while isinstance(graph, (func_graph.FuncGraph, tf_graphs.DefunGraph)):
        graph = graph.outer_graph
    return not (graph.building_function or ops.executing_eagerly_outside_functions())


def prune_loop_bodies(needed_only: bool = True) -> Any:
    """Returns a context in which loops are marked: their bodies run only ops on which the carried values depend."""
    if not needed_only:
        return contextlib.nullcontext()
    return tracing.attribute_scope({vocabulary.NEEDED_ATTRIBUTE: attr_value_pb2.AttrValue(b=True)})


def mark_session_semantics(is_limited: bool = False) -> None:
    """Notes that the graph of the current body or branch is one of TensorFlow 1, of a loop that counts or another."""
    graph = ops.get_default_graph()
    graph._ipu_like_a_session, graph._ipu_is_limited = True, is_limited


def record_control_inputs(body: Any) -> None:
    """Notes which ops wait for others so far: TensorFlow is about to have ops with side effects wait for each other."""
    host_variables.hoist_host_reads(body)
    needed_ops.record_waits(body)


def _functional_in_defun(stock: Callable[..., bool]) -> Callable[..., bool]:
    """Functions by `Defun` have functional loops and branches too, as XLA needs them; elsewhere those of graphs."""

    @functools.wraps(stock)
    def is_functional(graph: Any) -> bool:
        return stock(graph) or (isinstance(graph, tf_graphs.DefunGraph) and tracing.in_compilation())

    return is_functional


def _while_with_session_semantics(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def while_loop(cond: Callable[..., Any], body: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not _uses_v1_control_flow():
            return stock(cond, body, *args, **kwargs)

        returned: Any = None
        given = inspect.signature(stock).bind(cond, body, *args, **kwargs).arguments
        is_limited = given.get("maximum_iterations") is not None

        def condition(*values: Any) -> Any:
            mark_session_semantics(is_limited)
            answer = ops.convert_to_tensor(cond(*values))
            needed_ops.record_waits(ops.get_default_graph())
            return answer

        def noted(*values: Any) -> Any:
            nonlocal returned
            mark_session_semantics(is_limited)
            returned = body(*values)
            carried = _read_variables(returned)
            record_control_inputs(ops.get_default_graph())
            return carried

        with prune_loop_bodies():
            values = stock(condition, noted, *args, **kwargs)
        return _pack_like_body(values, returned)

    return while_loop


def _pack_like_body(values: Any, returned: Any) -> Any:
    """Packs a loop's results like its body's: TensorFlow 1 loops return a list even for one tensor.

    Functional ones return the sequence that they were called with.
    """
    if not isinstance(values, (list, tuple)):
        return values  # of a loop with a single value
    if isinstance(returned, tuple):
        return type(returned)._make(values) if hasattr(returned, "_make") else tuple(values)
    return list(values)


def _cond_with_session_semantics(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def cond_v2(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], name: str = "cond") -> Any:
        if not _uses_v1_control_flow():
            return stock(pred, true_fn, false_fn, name)
        branches = (true_fn, false_fn) if _is_strict() else (_unpack_single(true_fn), _unpack_single(false_fn))
        traced: list[Any] = []
        with prune_loop_bodies():
            return stock(pred, *(_recording_branch(branch, traced) for branch in branches), name)

    return cond_v2


def _handles_from_outside(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a branch capture the outside handle, not its argument: XLA cannot return handles from a branch."""

    @functools.wraps(stock)
    def capture(self: Any, tensor: Any, name: Any) -> Any:
        if tensor.dtype == dtypes.resource and tensor.graph is control_flow.branch_of(self):
            tensor = _argument_of(tensor, tensor.graph)
        return stock(self, tensor, name)

    return capture


def _argument_of(handle: Any, graph: Any) -> Any:
    """Returns the argument of a branch that a handle in it is."""
    nodes = {op.name: op.node_def for op in graph.get_operations()}
    names, functions = [placeholder.name for placeholder in graph.inputs], tf_graphs.functions_by_name(graph)
    return graph.inputs[control_flow_util_v2.resource_input_index(handle.name, names, nodes, functions)]


def _is_strict() -> bool:
    """Returns the `strict` argument of `tf.cond`, which calls this function's caller and does not pass it on."""
    frame = sys._getframe(2)
    is_cond = frame.f_code.co_name == "cond" and frame.f_globals.get("__name__") == stock_cond.__name__
    return bool(frame.f_locals["strict"]) if is_cond else True


def _unpack_single(branch: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a branch return the only element of a sequence, as `tf.cond` of TensorFlow 1 does."""

    def unpacked(*values: Any) -> Any:
        returned = branch(*values)
        return returned[0] if isinstance(returned, (list, tuple)) and len(returned) == 1 else returned

    return unpacked


def _recording_branch(branch: Callable[..., Any], traced: list[Any]) -> Callable[..., Any]:
    """Returns a branch that notes which ops wait for others, which operations it returns, and the graphs so far."""

    def noted(*values: Any) -> Any:
        mark_session_semantics()
        graph: Any = ops.get_default_graph()
        for other in traced:
            tf_graphs.continue_names(graph, other)
        traced.append(graph)
        graph._ipu_branches = traced
        returned = _read_variables(branch(*values))
        for op in nest.flatten(returned):
            if isinstance(op, ops.Operation) and op.graph is graph:
                tf_graphs.set_attr(op, vocabulary.ASKED_ATTRIBUTE, attr_value_pb2.AttrValue(b=True))
        needed_ops.record_waits(graph)
        return returned

    return noted


def _read_variables(returned: Any) -> Any:
    """Reads the variables among a body's or branch's results, before control inputs are recorded."""
    return nest.map_structure(
        lambda value: ops.convert_to_tensor(value) if resource_variable_ops.is_resource_variable(value) else value,
        returned,
    )


def _uses_v1_control_flow() -> bool:
    is_off = not control_flow_util.ENABLE_CONTROL_FLOW_V2
    return is_off and tracing.in_compilation() and tracing.has_session_semantics(ops.get_default_graph())
