"""Reads and changes the dtypes of a node's inputs and outputs, from its op definition.

Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tf_ipu_shim.tf_private.graphs import kernels, op_def_registry
from tf_ipu_shim.tf_private.protos import types_pb2

_HOST = "CPU"


def get_op_def(node: Any) -> Any:
    """Returns the definition of a node's op."""
    op_def = op_def_registry.get(node.op)
    if op_def is None:
        raise ValueError(
            f"The node {node.name} has the op {node.op}, which is not registered in this process: load the library "
            "that has it before the model is converted."
        )
    return op_def


def get_attribute(node: Any, op_def: Any, name: str) -> Any:
    """Returns an attribute of a node, or the op's default if the node was saved without it."""
    if name in node.attr:
        return node.attr[name]
    return next(attr.default_value for attr in op_def.attr if attr.name == name)


def input_dtypes(node: Any) -> list[int]:
    """Returns the dtype of each of a node's inputs, as `DataType` of the protobuf."""
    op_def = get_op_def(node)
    return _argument_dtypes(node, op_def, op_def.input_arg)


def output_dtypes(node: Any) -> list[int]:
    """Returns the dtype of each of a node's outputs, as `DataType` of the protobuf."""
    op_def = get_op_def(node)
    return _argument_dtypes(node, op_def, op_def.output_arg)


def touches_state(node: Any) -> bool:
    """Returns whether a node accepts or returns a reference, a resource or a variant, whose dtype is fixed."""
    op_def = get_op_def(node)
    arguments = [*op_def.input_arg, *op_def.output_arg]
    if any(argument.is_ref for argument in arguments):
        return True
    return bool({types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT} & {*input_dtypes(node), *output_dtypes(node)})


def calls_functions(node: Any) -> bool:
    """Returns whether a node runs functions of the graph's library, which have fixed dtypes."""
    return node.op in ("PartitionedCall", "StatefulPartitionedCall") or any(
        value.WhichOneof("value") == "func" or value.list.func for value in node.attr.values()
    )


def change_dtype(node: Any, source: int, target: int) -> Any | None:
    """Returns a node with one dtype in place of another, in all its attributes that can have it."""
    op_def, result = get_op_def(node), type(node)()
    result.CopyFrom(node)
    for attr in op_def.attr:
        allowed = attr.allowed_values.list.type
        if attr.type not in ("type", "list(type)") or (allowed and target not in allowed):
            continue
        value = get_attribute(node, op_def, attr.name)
        if attr.type == "type" and value.type == source:
            result.attr[attr.name].type = target
        elif attr.type == "list(type)" and source in value.list.type:
            result.attr[attr.name].list.type[:] = [
                target if element_type == source else element_type for element_type in value.list.type
            ]
    return result if _has_kernel(result, op_def) else None


def _argument_dtypes(node: Any, op_def: Any, arguments: Iterable[Any]) -> list[int]:
    dtypes: list[int] = []
    for argument in arguments:
        if argument.type_list_attr:
            dtypes += get_attribute(node, op_def, argument.type_list_attr).list.type
            continue
        count = get_attribute(node, op_def, argument.number_attr).i if argument.number_attr else 1
        dtype = get_attribute(node, op_def, argument.type_attr).type if argument.type_attr else argument.type
        dtypes += [dtype] * count
    return dtypes


def _has_kernel(node: Any, op_def: Any) -> bool:
    cpu_kernels = [
        kernel for kernel in kernels.get_registered_kernels_for_op(node.op).kernel if kernel.device_type == _HOST
    ]
    if not cpu_kernels:  # an op of the plugin's, or one that has no kernel anywhere
        return True
    types = {attr.name: get_attribute(node, op_def, attr.name) for attr in op_def.attr if attr.type == "type"}
    return any(_accepts_dtypes(kernel, types) for kernel in cpu_kernels)


def _accepts_dtypes(kernel: Any, types: Mapping[str, Any]) -> bool:
    return all(
        constraint.name not in types or types[constraint.name].type in constraint.allowed_values.list.type
        for constraint in kernel.constraint
    )
