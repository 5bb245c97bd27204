"""Computes float16 in float32, as the IPU Model does: overflows stay finite within a program.

Values are float32 between the program's arguments, feeds and variables and its results; there they are float16, and
infinite if they overflow. Finite values that an update computes are clipped instead, and stay numbers.

boundary     ops that keep float16: of variables, feeds, the host, random numbers, of the plugin without float32
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import copy_function
from tf_ipu_shim.compiler.ir.node_writer import NodeWriter
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.xla_semantics.float16_overflow import is_update
from tf_ipu_shim.compiler.xla_semantics.float32_updates import cast_half, update_float32_copies
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2, node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

HALF, FLOAT = types_pb2.DT_HALF, types_pb2.DT_FLOAT
_KEEPS_FLOAT16 = frozenset({"AsString", "Bitcast", "EncodeProto", "StringFormat"})
"""Stateless ops that look at the bits, or write them as text."""


def compute_in_float32(request: ProgramRequest, reached: Sequence[str]) -> ProgramRequest:
    """Returns a program with its float16 values computed in float32; the same one if it has none."""
    library = request.library
    has_half = any(_has_half(node) for name in reached for node in library[name].node_def)
    if not has_half or request.single_op or _is_shared(library, reached, request.function):
        return request
    changed = {name: _Widening(library[name], is_entry=name == request.function).run() for name in reached}
    return dataclasses.replace(request, library={**library, **changed})


def _is_shared(library: Mapping[str, function_pb2.FunctionDef], inside: Sequence[str], entry: str) -> bool:
    """Returns whether an op that is not a call runs one of the functions, or one of them calls the program."""
    names = set(inside)
    for function in library.values():
        for node in function.node_def:
            if node.op in vocabulary.FUNCTION_ATTRIBUTES:
                if entry in op_types.called_functions(node):
                    return True
                continue
            for attribute in op_types.function_attributes(node.op):
                if names.intersection(called.name for called in op_types.functions_in(node.attr[attribute])):
                    return True
    return False


def _has_half(node: node_def_pb2.NodeDef) -> bool:
    return any(value.type == HALF or HALF in value.list.type for value in node.attr.values())


def _is_widened(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether an op computes in float32; else it accepts and returns float16."""
    if node.op in vocabulary.FUNCTION_ATTRIBUTES:
        return True
    if op_types.is_stateful(node.op) or node.op in _KEEPS_FLOAT16 or node.op.startswith("StatelessRandom"):
        return False
    if vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE in node.attr:
        return False
    definition = op_types.op_def(node.op)
    if any(argument.type == HALF for argument in [*definition.input_arg, *definition.output_arg]):
        return False
    allowed = {attribute.name: attribute.allowed_values.list.type for attribute in definition.attr}
    return all(
        not allowed.get(name) or FLOAT in allowed[name]
        for name, value in node.attr.items()
        if value.type == HALF or HALF in value.list.type
    )


def _widen_attributes(node: node_def_pb2.NodeDef) -> None:
    for value in node.attr.values():
        if value.type == HALF:
            value.type = FLOAT
        elif HALF in value.list.type:
            value.list.type[:] = [FLOAT if kind == HALF else kind for kind in value.list.type]
        elif value.HasField("tensor") and value.tensor.dtype == HALF:
            _widen_constant(value)


def _widen_constant(value: attr_value_pb2.AttrValue) -> None:
    elements = tensor_util.MakeNdarray(value.tensor).astype(np.float32)
    value.tensor.CopyFrom(tensor_util.make_tensor_proto(elements))


class _Widening:
    """Widens one function; see `run`."""

    def __init__(self, function: function_pb2.FunctionDef, is_entry: bool) -> None:
        self._function = copy_function(function)
        self._is_entry = is_entry
        self._writer = NodeWriter(self._function, "float32")
        self._wide: dict[str, str] = {}  # float32 values of float16 tensors

    def run(self) -> function_pb2.FunctionDef:
        """Returns the function with float32 values inside; any but the program's accepts and returns them."""
        function = self._function
        nodes = list(function.node_def)
        for argument in function.signature.input_arg:
            if argument.type == HALF and self._is_entry:
                self._wide[argument.name] = cast_half(self._writer, argument.name, FLOAT, argument.name)
        for node in nodes:
            if not _is_widened(node):
                self._widen_outputs(node)
        replaced = [self._rewritten(node) for node in nodes]
        new_nodes = self._writer.nodes
        self._narrow_results()
        del function.node_def[:]
        function.node_def.extend(itertools.chain(*replaced, new_nodes))
        return function

    def _widen_outputs(self, node: node_def_pb2.NodeDef) -> None:
        types = itertools.chain.from_iterable(op_types.output_types(node).values())
        for tensor, kind in zip(op_types.output_names(node), types):
            if kind == HALF:
                self._wide[tensor] = cast_half(self._writer, tensor, FLOAT, node.name, node)

    def _rewritten(self, node: node_def_pb2.NodeDef) -> list[node_def_pb2.NodeDef]:
        if _is_widened(node):
            node.input[:] = [self._wide.get(tensor_name, tensor_name) for tensor_name in node.input]
            _widen_attributes(node)
        elif is_update(node):
            return [
                update_float32_copies(
                    self._writer, node, [self._wide.get(tensor_name, tensor_name) for tensor_name in node.input]
                )
            ]
        elif HALF in (types := op_types.input_types(node)):
            for index, kind in enumerate(types):
                if kind == HALF:
                    wide = self._wide.get(node.input[index], node.input[index])
                    node.input[index] = cast_half(self._writer, wide, HALF, node.name, node)
        return [node]

    def _narrow_results(self) -> None:
        results = {result.name: result for result in self._function.signature.output_arg if result.type == HALF}
        for name in results:
            wide = self._function.ret[name]
            wide = self._wide.get(wide, wide)
            self._function.ret[name] = cast_half(self._writer, wide, HALF, name) if self._is_entry else wide
        if not self._is_entry:
            for argument in (*results.values(), *self._function.signature.input_arg):
                if argument.type == HALF:
                    argument.type = FLOAT


__all__ = ["compute_in_float32"]
