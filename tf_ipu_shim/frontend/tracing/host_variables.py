"""Reads host variables before a session's compiled program and passes their values to it.

TensorFlow needs an op and its variables on one device. On Graphcore's hardware, too, a program gets the value of a
variable that is not its own.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.graphs import func_graph, ops
from tf_ipu_shim.tf_private.variables import gen_resource_variable_ops


def hoist_host_reads(graph: func_graph.FuncGraph) -> None:
    """Passes the values of host variables that a traced function only reads as arguments."""
    for handle, inside in list(graph.captures):
        if handle.dtype.name != "resource" or not _is_host_handle(handle):
            continue
        reads = inside.consumers()
        if reads and all(_is_read_only(read, graph) for read in reads):
            _pass_value(graph, handle, inside, reads)


def _is_host_handle(handle: Any) -> bool:
    return bool(handle.device) and device_lib.DeviceSpec.from_string(handle.device).device_type == "CPU"


def _is_read_only(op: ops.Operation, graph: func_graph.FuncGraph) -> bool:
    is_waited_for = bool(tf_graphs.control_outputs(op)) or op in graph.control_outputs
    return op.type == "ReadVariableOp" and not is_waited_for


def _pass_value(graph: func_graph.FuncGraph, handle: Any, inside: Any, reads: list[ops.Operation]) -> None:
    with graph.outer_graph.as_default(), ops.control_dependencies(None), ops.device(handle.device):
        outside = gen_resource_variable_ops.read_variable_op(handle, reads[0].outputs[0].dtype)
    outside.set_shape(reads[0].outputs[0].shape)
    value = graph.capture(outside)
    for read in reads:
        (source_value,) = read.outputs
        for user in source_value.consumers():
            for index, operand in enumerate(user.inputs):
                if operand is source_value:
                    tf_graphs.update_input(user, index, value)
    graph.function_captures.pop(id(handle))
    graph.inputs[:] = [placeholder for placeholder in graph.inputs if placeholder is not inside]
