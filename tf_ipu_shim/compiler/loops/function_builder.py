"""Builds a new function op by op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.checks.host_ops import ON_DEVICE_MARK
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Result
from tf_ipu_shim.tf_private.protos import node_def_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util


class FunctionBuilder:
    """Builds a function from arguments, ops and results.

    Example:
        >>> writer = FunctionBuilder("double", "step")
        >>> x = writer.argument("x", 1)  # DT_FLOAT
        >>> sum_of_both = writer.node("sum", "AddV2", [x, x], T=1)
        >>> writer.result(1, "sum:z:0")
        >>> writer.graph.nodes, writer.graph.returns
        ([sum (AddV2)], ['sum:z:0'])
    """

    def __init__(self, name: str, traced: str) -> None:
        self._name = name
        self._traced = traced
        self._arguments: dict[str, int] = {}
        self._results: list[Result] = []
        self._required: dict[str, None] = {}
        self._nodes: list[node_def_pb2.NodeDef] = []

    @property
    def graph(self) -> FunctionGraph:
        """Returns the function's graph."""
        return FunctionGraph(self._name, self._arguments, self._nodes, self._results, self._required, self._traced)

    def argument(self, name: str, kind: int) -> str:
        """Adds an argument; returns its name."""
        self._arguments[name] = kind
        return name

    def result(self, kind: int, tensor: str) -> None:
        """Adds a result."""
        self._results.append(Result(f"result_{len(self._results)}", kind, tensor))

    def must_run(self, node: str) -> None:
        """Marks an op to run even if no result needs it."""
        self._required[node] = None

    def add(self, node: node_def_pb2.NodeDef) -> None:
        """Adds a NodeDef unchanged."""
        self._nodes.append(node)

    def node(self, name: str, op: str, inputs: Sequence[str], host: bool = False, **types: int) -> node_def_pb2.NodeDef:
        """Adds an op with type attributes."""
        node = node_def_pb2.NodeDef(name=name, op=op, input=inputs)
        for attribute, kind in types.items():
            node.attr[attribute].type = kind
        if host:
            node.attr[vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE].s = ON_DEVICE_MARK
        self._nodes.append(node)
        return node

    def constant(self, name: str, value: np.ndarray | np.int32, host: bool = False) -> str:
        """Adds a constant; returns the tensor."""
        node = self.node(name, "Const", [], host, dtype=dtypes.as_dtype(value.dtype).as_datatype_enum)
        node.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(value))
        return f"{name}:output:0"
