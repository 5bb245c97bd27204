"""Imports TensorFlow internals of graphs: operations, devices and the function library."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from tensorflow.python.framework import (
    auto_control_deps,  # the control dependencies that tf.function adds
    auto_control_deps_utils,  # which resources an op reads or writes
    convert_to_constants,  # freezes the variables of a session's graph
    device,  # device names as TensorFlow merges and prints them
    device_spec,  # DeviceSpecV2, where `tf` may be TensorFlow 1
    func_graph,  # FuncGraph: the graph that a program is traced into
    graph_to_function_def,  # the FunctionDef of a graph that is no FuncGraph
    importer,  # import_graph_def with the names of functions kept
    kernels,  # which ops have a kernel on CPU
    op_def_registry,  # the OpDef of an op by its type
    ops,  # Operation, Graph and their classes, init_scope
    random_seed,  # the graph's seed, set as TensorFlow 1 does
)
from tensorflow.python.framework.function import (
    _FuncGraph as DefunGraph,  # the graph of a function of TensorFlow 1, which tracing tells apart
)
from tensorflow.python.grappler import (
    tf_optimizer,  # Grappler's passes on our graph
)
from tensorflow.python.ops import (
    handle_data_util,  # dtype and shape behind a resource handle
)
from tensorflow.python.profiler.internal import (
    flops_registry,  # registers the statistics that count flops
)


def set_attr(op: ops.Operation, name: str, value: Any) -> None:
    """Sets an attribute of an op that a graph has already."""
    op._set_attr(name, value)


def clear_attr(op: ops.Operation, name: str) -> None:
    """Removes an attribute from an op."""
    op._clear_attr(name)


def set_device(op: ops.Operation, device_name: Any) -> None:
    """Places an op that a graph has already."""
    op._set_device(device_name)


def add_control_input(op: ops.Operation, control_input: Any) -> None:
    """Makes an op wait for another."""
    op._add_control_input(control_input)


def add_control_inputs(op: ops.Operation, control_inputs: Any) -> None:
    """Makes an op wait for others."""
    op._add_control_inputs(control_inputs)


def replace_control_input(op: ops.Operation, old: ops.Operation, new: Any) -> None:
    """Replaces an op's wait for another op by waits for others."""
    controls = [control for control in op.control_inputs if control is not old]
    op._remove_all_control_inputs()
    op._add_control_inputs([*controls, *new])


def control_outputs(op: ops.Operation) -> Any:
    """Returns the ops that wait for an op."""
    return op._control_outputs


def update_input(op: ops.Operation, index: int, tensor: Any) -> None:
    """Replaces an input of an op."""
    op._update_input(index, tensor)


def original_op(op: ops.Operation) -> Any:
    """Returns the op that an op of a gradient belongs to."""
    return op._original_op


def attr_scope(graph: ops.Graph, attributes: Any) -> Any:
    """Returns a scope that adds attributes to its ops."""
    return graph._attr_scope(attributes)


def functions_by_name(graph: ops.Graph) -> Any:
    """Returns a graph's functions by name."""
    return graph._functions


def add_function_recursive(graph: ops.Graph, function: Any) -> None:
    """Adds a function with the functions that it calls."""
    graph._add_function_recursive(function)


def collections_of(graph: ops.Graph) -> Any:
    """Returns a graph's collections themselves."""
    return graph._collections


def create_op(graph: ops.Graph, *arguments: Any, **keywords: Any) -> Any:
    """Adds an op without converting its inputs."""
    return graph._create_op_internal(*arguments, **keywords)


def device_functions(graph: ops.Graph) -> Any:
    """Returns the device scopes that a graph is in."""
    return graph._device_functions_outer_to_inner


def control_flow_context(graph: ops.Graph) -> Any:
    """Returns the context of TensorFlow 1 control flow."""
    return graph._get_control_flow_context()


def set_control_flow_context(graph: ops.Graph, context: Any) -> None:
    """Enters a context of TensorFlow 1 control flow."""
    graph._set_control_flow_context(context)


def variable_creator_scope(graph: ops.Graph, creator: Any, priority: int = 100) -> Any:
    """Returns a scope whose function makes the variables."""
    return graph._variable_creator_scope(creator, priority)


def attr_scope_map(graph: ops.Graph) -> Any:
    """Returns the attributes that a graph adds to its ops; a new dictionary for another object."""
    return getattr(graph, "_attr_scope_map", {})


def watched_variables(graph: func_graph.FuncGraph) -> Any:
    """Returns the variables that a traced function has read or written."""
    return getattr(graph, "_watched_variables", ())


def continue_names(graph: func_graph.FuncGraph, other: func_graph.FuncGraph) -> None:
    """Keeps names of ops and scopes of two graphs distinct, as if both were one graph."""
    graph._names_in_use = other._names_in_use.copy()


def returned_tensors(order: auto_control_deps.AutomaticControlDependencies) -> Any:
    """Returns the results of the function that the control dependencies are for."""
    return order._returned_tensors


def is_loss_scaled_by_optimizer(graph: ops.Graph) -> Any:
    """Returns whether an optimizer has divided the loss by the replicas."""
    return getattr(graph, "_is_loss_scaled_by_optimizer", False)


SUMMARIES_OF_VERSION_2 = ops.GraphKeys._SUMMARY_COLLECTION


def order_side_effects(graph: func_graph.FuncGraph) -> None:
    """Makes loops in a graph order their side effects, as loops in a `tf.function` do."""
    graph._add_control_dependencies = True


def order_side_effects_as_outer(graph: func_graph.FuncGraph) -> None:
    """Makes loops in a graph order their side effects if loops in the graph around it do."""
    graph._add_control_dependencies = graph.outer_graph._add_control_dependencies


def copy_device_scopes(graph: ops.Graph, outer: ops.Graph) -> None:
    """Puts a graph in the device scopes of another."""
    graph._device_function_stack = outer._device_function_stack.copy()


@contextlib.contextmanager
def no_variable_creators(graph: ops.Graph) -> Iterator[None]:
    """A scope whose variables no strategy makes."""
    stack = graph._variable_creator_stack
    graph._variable_creator_stack = []
    try:
        yield
    finally:
        graph._variable_creator_stack = stack


def device_spec_of(function: Any) -> Any:
    """Returns the device of a device scope; None for a function of a script's own."""
    return getattr(function, "_spec", None)


def number_of(op: ops.Operation) -> int:
    """Returns the number of an op in its graph, which counts up as ops are made."""
    return op._id


def creation_stack(op: Any) -> Any:
    """Returns the stack in which an op was made; None if TensorFlow cannot read it.

    A file name that is not UTF-8 ends the process in TensorFlow 2.15.1, and raises RuntimeError in 2.21.0.
    """
    return None if _has_unreadable_files(len(sys.modules)) else op.traceback


@functools.lru_cache(maxsize=1)
def _has_unreadable_files(_module_count: int) -> bool:
    modules = [module for _, module in list(sys.modules.items()) if isinstance(module, types.ModuleType)]
    # Of a lazy module `__file__` would import it.
    files = [str(vars(module).get("__file__")) for module in modules]
    return any("\udc80" <= character <= "\udcff" for file in files if not file.isascii() for character in file)
