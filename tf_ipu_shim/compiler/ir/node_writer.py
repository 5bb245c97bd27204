"""Makes new nodes for a function, under names that none of its nodes has."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.node_defs import copy_annotations
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util


class FreshNames:
    """Returns names that no node of a function has."""

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self._taken = {node.name for node in function.node_def}
        self._taken.update(argument.name for argument in function.signature.input_arg)

    def unique(self, name: str) -> str:
        """Returns an unused name similar to this one and reserves it."""
        candidate, suffix = name, 0
        while candidate in self._taken:
            suffix += 1
            candidate = f"{name}_{suffix}"
        self._taken.add(candidate)
        return candidate


class NodeWriter:
    """Makes nodes for a function.

    Args:
        purpose: the end of all names, such as `float32`.

    Attributes:
        nodes: the nodes made so far.
    """

    def __init__(self, function: function_pb2.FunctionDef, purpose: str) -> None:
        self.nodes: list[node_def_pb2.NodeDef] = []
        self._purpose = purpose
        self._names = FreshNames(function)

    @property
    def last(self) -> node_def_pb2.NodeDef:
        """The node made last."""
        return self.nodes[-1]

    def op(
        self, op: str, inputs: Iterable[str], name: str, like: node_def_pb2.NodeDef | None = None, **types: int
    ) -> str:
        """Makes an op with type attributes, placed like another one; returns its first result, if it has any."""
        node = node_def_pb2.NodeDef(name=self._names.unique(f"{name}/{self._purpose}"), op=op, input=inputs)
        if like is not None:
            node.device = like.device
            copy_annotations(like, node)
        for attribute, kind in types.items():
            node.attr[attribute].type = kind
        self.nodes.append(node)
        return next(iter(op_types.output_names(node)), "")

    def constant(self, value: np.generic, name: str, like: node_def_pb2.NodeDef | None = None) -> str:
        """Makes a constant."""
        tensor = self.op("Const", [], name, like, dtype=dtypes.as_dtype(value.dtype).as_datatype_enum)
        self.last.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(value))
        return tensor
