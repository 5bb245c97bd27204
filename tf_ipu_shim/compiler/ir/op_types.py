"""Queries facts about op types: dtypes of inputs and outputs, statefulness, functions they run."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private.graphs import op_def_registry
from tf_ipu_shim.tf_private.protos import attr_value_pb2, node_def_pb2, types_pb2

RESOURCE = types_pb2.DT_RESOURCE
VARIANT = types_pb2.DT_VARIANT
HANDLES = frozenset({RESOURCE, VARIANT})


@functools.cache
def op_def(op: str) -> Any:
    """Returns TensorFlow's OpDef of an op type."""
    definition = op_def_registry.get(op)
    if definition is None:
        raise LookupError(f"Op type {op} is not registered in this process. Import the module that registers it.")
    return definition


@functools.cache
def is_stateful(op: str) -> bool:
    """Returns whether running the op twice, or not at all, has an observable effect."""
    return op_def(op).is_stateful


class _Argument(NamedTuple):
    """An input or output of an OpDef, read once because protobuf fields are slow."""

    name: str
    type: int
    type_attr: str
    number_attr: str
    type_list_attr: str


def _arguments(definitions: Any) -> tuple[_Argument, ...]:
    return tuple(_Argument(*(getattr(definition, field) for field in _Argument._fields)) for definition in definitions)


@functools.cache
def _inputs(op: str) -> tuple[_Argument, ...]:
    return _arguments(op_def(op).input_arg)


@functools.cache
def _outputs(op: str) -> tuple[_Argument, ...]:
    return _arguments(op_def(op).output_arg)


def has_outputs(op: str) -> bool:
    """Returns whether an op type has results."""
    return bool(_outputs(op))


def output_types(node: node_def_pb2.NodeDef) -> dict[str, list[int]]:
    """Maps the name of each output argument of a node to its dtypes.

    Example:
        >>> node = tf.compat.v1.NodeDef(name="halves", op="Split")
        >>> node.attr["num_split"].i, node.attr["T"].type = 2, 1  # DT_FLOAT
        >>> output_types(node)
        {'output': [1, 1]}
    """
    return {argument.name: _argument_types(node, argument) for argument in _outputs(node.op)}


def input_types(node: node_def_pb2.NodeDef) -> list[int]:
    """Returns the dtypes of a node's inputs, in order."""
    types: list[int] = []
    for argument in _inputs(node.op):
        types.extend(_argument_types(node, argument))
    return types


def _argument_types(node: node_def_pb2.NodeDef, argument: _Argument) -> list[int]:
    if argument.type_list_attr:
        return list(node.attr[argument.type_list_attr].list.type)
    kind = argument.type or node.attr[argument.type_attr].type
    return [kind] * (node.attr[argument.number_attr].i if argument.number_attr else 1)


@functools.cache
def function_attributes(op: str) -> tuple[str, ...]:
    """Returns the attributes of an op type that refer to functions."""
    return tuple(attribute.name for attribute in op_def(op).attr if attribute.type in ("func", "list(func)"))


def functions_in(value: attr_value_pb2.AttrValue) -> list[attr_value_pb2.NameAttrList]:
    """Returns the functions that an attribute value refers to."""
    return [value.func] if value.HasField("func") else list(value.list.func)


def function_values(node: node_def_pb2.NodeDef) -> Iterator[tuple[str, attr_value_pb2.NameAttrList]]:
    """Yields the functions that a control-flow op or call runs: attribute name and `NameAttrList`."""
    for attribute in vocabulary.FUNCTION_ATTRIBUTES.get(node.op, ()):
        for function in functions_in(node.attr[attribute]):
            yield attribute, function


def output_names(node: node_def_pb2.NodeDef) -> list[str]:
    """Returns the names of a node's outputs in a function, such as `MatMul:product:0`, in order."""
    outputs = output_types(node).items()
    return [f"{node.name}:{output}:{index}" for output, types in outputs for index in range(len(types))]


def called_functions(node: node_def_pb2.NodeDef) -> list[str]:
    """Returns the names of the functions that a control-flow op or call runs, in attribute order."""
    if node.op not in vocabulary.FUNCTION_ATTRIBUTES:
        return []
    return [function.name for _, function in function_values(node)]
