"""Finds ops of constants that XLA's compiler evaluates by TensorFlow's kernels (constant folding).

Random numbers of constant seeds are the kernels', others are XLA's. A program in mode `kernels` asks here which op is
which. XLA knows the shapes of all tensors and inlines called functions. It passes constants to the branches of an `If`,
not of a `Case`, and to loops that do not change them. If it treats an op as constant but cannot compute it, it computes
no constant op of that function. Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.node_defs import producer_name
from tf_ipu_shim.tf_private.graphs import kernels
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_SHAPES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
# TensorFlow's folding passes these over: their results hang on the device.
_NOT_FOLDED = frozenset({"StatelessRandomGetAlg", "StatelessRandomGetKeyCounter"})
_CASES = frozenset({"Case", "StatelessCase"})
_MAX_BYTES = 10 << 20  # a larger result is left to the program


def folded_ops(functions: Mapping[str, function_pb2.FunctionDef]) -> dict[str, set[str]]:
    """Returns the names of such ops by function; a call with constants counts for all calls of the function."""
    constants: dict[str, frozenset[int]] = dict.fromkeys(functions, frozenset())
    names: dict[str, set[str]] = {}
    pending = list(functions)
    while pending:
        name = pending.pop()
        folded = FoldedOps(functions[name], constants[name])
        names[name] = folded.names
        for node in functions[name].node_def:
            for called in filter(functions.__contains__, op_types.called_functions(node)):
                constant_arguments = constants[called] | folded.constant_arguments(node.name, functions)
                if constant_arguments != constants[called]:
                    constants[called] = constant_arguments
                    pending.append(called)
    return names


class FoldedOps:
    """The ops of a function that XLA's compiler computes.

    Args:
        function: a function of a program, as XLA compiles it.
        constant_indices: the indices of its arguments that are constants in its calls.
    """

    def __init__(self, function: function_pb2.FunctionDef, constant_indices: Collection[int] = ()) -> None:
        graph = FunctionGraph.parse(function)
        constants = {list(graph.arguments)[index] for index in constant_indices}
        self._nodes = {node.name: node for node in graph.nodes}
        self._constants = constants
        self.names: set[str] = set()
        for node in graph.nodes:  # what they take comes first
            if _may_be_folded(node) and (node.op in _SHAPES or all(map(self._is_constant, node.inputs))):
                self.names.add(node.name)
        if any(_cannot_be_computed(self._nodes[name]) for name in self.names):
            self.names = {name for name in self.names if self._nodes[name].op == "Const"}

    def constant_arguments(self, name: str, library: Mapping[str, function_pb2.FunctionDef]) -> frozenset[int]:
        """Returns the indices of arguments that a call, branch or loop passes as constants."""
        node = self._nodes.get(name)
        if node is None or node.op in _CASES:
            return frozenset()
        indices = {index for index, tensor_name in enumerate(node.function_inputs) if self._is_constant(tensor_name)}
        if node.op in vocabulary.LOOPS:
            indices &= _invariant_variables(library[node.proto.attr["body"].func.name])
        return frozenset(indices)

    def _is_constant(self, tensor_name: str) -> bool:
        return tensor_name in self._constants or producer_name(tensor_name) in self.names


def _may_be_folded(node: Node) -> bool:
    if node.op == "Const":
        return True
    if node.op in _NOT_FOLDED | vocabulary.CALLS or op_types.is_stateful(node.op) or not _has_kernel(node.op):
        return False
    dtype_enums = [kind for types in op_types.output_types(node.proto).values() for kind in types]
    return not {op_types.VARIANT, op_types.RESOURCE}.intersection(dtype_enums) and _drawn_bytes(node) <= _MAX_BYTES


def _cannot_be_computed(node: Node) -> bool:
    return node.op in vocabulary.FUNCTION_ATTRIBUTES or node.op.startswith("Xla")


def _drawn_bytes(node: Node) -> int:
    """Returns the size of a random op's result, if its shape is recorded."""
    shape = node.producers[0] if node.op.startswith("Stateless") and node.producers else None
    if shape is None or shape.op != "Const" or "dtype" not in node.proto.attr:
        return 0
    elements = int(np.prod(tensor_util.MakeNdarray(shape.proto.attr["value"].tensor)))
    return elements * dtypes.as_dtype(node.proto.attr["dtype"].type).size


@functools.cache
def _has_kernel(op: str) -> bool:
    return any(kernel.device_type == "CPU" for kernel in kernels.get_registered_kernels_for_op(op).kernel)


def _invariant_variables(body: function_pb2.FunctionDef) -> set[int]:
    """Returns the loop variables that a body returns unchanged."""
    sources = {f"{node.name}:output:0": node for node in body.node_def if node.op == "Identity"}
    arguments = [argument.name for argument in body.signature.input_arg]
    results = [_source(body.ret[result.name], sources) for result in body.signature.output_arg]
    return {index for index, (tensor_name, argument) in enumerate(zip(results, arguments)) if tensor_name == argument}


def _source(tensor_name: str, copies: Mapping[str, node_def_pb2.NodeDef]) -> str:
    while tensor_name in copies:
        tensor_name = copies[tensor_name].input[0]
    return tensor_name
