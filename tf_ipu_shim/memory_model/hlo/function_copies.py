"""Copies a function without its ops, and renames tensors in a function, for analyses that replace ops."""

from __future__ import annotations

from collections.abc import Mapping

from tf_ipu_shim.compiler.ir.node_defs import copy_function
from tf_ipu_shim.tf_private.protos import function_pb2


def without_ops(function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    """Returns a copy with the same signature and results but no ops yet."""
    copy = copy_function(function)
    del copy.node_def[:]
    return copy


def rename(function: function_pb2.FunctionDef, renamed: Mapping[str, str]) -> None:
    """Renames tensors in ops and results."""
    for node in function.node_def:
        for index, tensor_name in enumerate(node.input):
            if tensor_name in renamed:
                node.input[index] = renamed[tensor_name]
    for result, tensor in list(function.ret.items()):  # a map of protobuf loses its place where it is written to
        function.ret[result] = renamed.get(tensor, tensor)
