"""Infers dtypes and shapes of ops outside XLA programs by TensorFlow's own shape functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import version as versions

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.node_defs import copy_node, data_inputs
from tf_ipu_shim.compiler.ir.tensor_lists import MAKE, ListContents, created_list
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.tf_private.graphs import importer, ops
from tf_ipu_shim.tf_private.protos import function_pb2, graph_pb2, node_def_pb2, tensor_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_shape, tensor_util

_MAX_ELEMENTS = 16


class TensorSpec(NamedTuple):
    """A tensor's dtype and shape, as far as known.

    Args:
        type: `DataType`; for a variable's handle its value's.
        shape: dimensions; None if they are not known before it runs.
        variable: whether it is a variable's handle.
        literal: its value, if that is known before anything runs; None otherwise, and for large ones.
        axis: its mini-batch axis; None if it has none.
        listed: its elements, if it is a list of tensors and they are known.
    """

    type: int
    shape: tuple[int, ...] | None
    variable: bool = False
    literal: tensor_pb2.TensorProto | None = None
    axis: Axis | None = None
    listed: ListContents | None = None


def bytes_of(spec: TensorSpec) -> int:
    """Returns the bytes of a tensor or list; 0 if its shape is unknown or it has no fixed size."""
    if spec.listed is not None:
        return spec.listed.bytes
    if spec.shape is None or not spec.type:
        return 0
    kind = dtypes.as_dtype(spec.type).base_dtype
    size = 0 if kind in (dtypes.string, dtypes.resource, dtypes.variant) else kind.size
    for dimension in spec.shape:
        size *= dimension
    return size


class ShapeInferenceError(Exception):
    """TensorFlow rejects the shapes of some ops; their launch will report it."""


def infer(
    nodes: Iterable[node_def_pb2.NodeDef],
    arguments: Mapping[str, TensorSpec],
    library: Mapping[str, function_pb2.FunctionDef],
) -> dict[str, TensorSpec]:
    """Returns dtypes and shapes of the results of some nodes."""
    graph_def = graph_pb2.GraphDef()
    graph_def.versions.producer = versions.GRAPH_DEF_VERSION  # in old graphs a scalar placeholder has any shape
    names: dict[str, str] = {}
    for index, (name, spec) in enumerate(arguments.items()):
        names[name] = f"argument_{index}"
        _add_argument(graph_def.node.add(name=names[name]), spec)
    outputs: dict[str, tuple[str, int]] = {}
    remaining = list(nodes)
    for node in remaining:
        for flat, output in enumerate(op_types.output_names(node)):
            outputs[output] = (node.name, flat)
            names.setdefault(output, f"{node.name}:{flat}")
    for node in remaining:
        copy = copy_node(node, [names[tensor_name] for tensor_name in data_inputs(node)])
        copy.device = ""
        graph_def.node.append(copy)
    graph_def.library.function.extend(reached_functions(remaining, library))
    with ops.Graph().as_default() as graph:
        try:
            importer.import_graph_def(graph_def, name="")
        except ValueError as error:
            raise ShapeInferenceError(str(error)) from error
        found = {}
        is_known = bool(arguments) and all(spec.literal is not None for spec in arguments.values())
        for tensor, (name, index) in outputs.items():
            output = graph.get_operation_by_name(name).outputs[index]
            shape = tuple(output.shape.as_list()) if output.shape.is_fully_defined() else None
            listed = created_list(output.op) if output.op.type in MAKE else None
            literal = _literal(output, shape) if is_known else None
            found[tensor] = TensorSpec(output.dtype.as_datatype_enum, shape, literal=literal, listed=listed)
        return found


def _literal(tensor: Any, shape: tuple[int, ...] | None) -> tensor_pb2.TensorProto | None:
    """Returns the value of a small integer tensor, from which shapes are computed."""
    if shape is None or not tensor.dtype.is_integer or math.prod(shape) > _MAX_ELEMENTS:
        return None
    value = tensor_util.try_evaluate_constant(tensor)
    return None if value is None else tensor_util.make_tensor_proto(value, tensor.dtype)


def _add_argument(node: node_def_pb2.NodeDef, spec: TensorSpec) -> None:
    shape = tensor_shape.TensorShape(spec.shape).as_proto()
    node.attr["dtype"].type = spec.type or types_pb2.DT_FLOAT
    node.attr["shape"].shape.CopyFrom(shape)
    node.op = "Placeholder"
    if spec.literal is not None:
        del node.attr["shape"]
        node.op = "Const"
        node.attr["value"].tensor.CopyFrom(spec.literal)
    elif spec.variable:
        node.op = "VarHandleOp"
        node.attr["container"].s = node.attr["shared_name"].s = b""


def reached_functions(
    nodes: Iterable[node_def_pb2.NodeDef], library: Mapping[str, function_pb2.FunctionDef]
) -> list[function_pb2.FunctionDef]:
    """Returns the functions that some nodes call, directly or indirectly."""
    called: dict[str, None] = {}
    pending = list(nodes)
    while pending:
        for attribute in pending.pop().attr.values():
            for function in op_types.functions_in(attribute):
                if function.name in library and function.name not in called:
                    called[function.name] = None
                    pending.extend(library[function.name].node_def)
    return [library[name] for name in called]
