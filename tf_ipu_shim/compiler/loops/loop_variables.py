"""Adds variables that start at zero to a script's loop, for accumulated gradients and for the order of feeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node, Result
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import constant, control_inputs, copy_node
from tf_ipu_shim.tf_private.protos import tensor_shape_pb2


class LoopVariable(NamedTuple):
    """A loop variable that starts at zero.

    Args:
        name: the name of the loop variable, in condition and body.
        kind: its `DataType`.
    """

    name: str
    kind: int
    shape: tensor_shape_pb2.TensorShapeProto
    tensor: str


def declare_variables(functions: Functions, loop: Node, variables: Iterable[LoopVariable]) -> None:
    """Adds loop variables to a loop's condition and body, so that the body can use them."""
    for name in ("cond", "body"):
        functions[loop.proto.attr[name].func.name].arguments.update(
            (variable.name, variable.kind) for variable in variables
        )


def carry_variables(functions: Functions, graph: FunctionGraph, loop: Node, variables: Iterable[LoopVariable]) -> None:
    """Initialises loop variables before a loop and returns them from its body."""
    new_node = copy_node(loop.proto)
    zeros = []
    for variable in variables:
        scalar = np.zeros([], dtypes.as_dtype(variable.kind).as_numpy_dtype)
        zero = constant(f"{loop.name}/{variable.name}", scalar, variable.kind)
        zero.attr["value"].tensor.tensor_shape.CopyFrom(variable.shape)  # its one element stands for all
        zeros.append(zero)
        new_node.attr["T"].list.type.append(variable.kind)
        if loop.proto.attr["output_shapes"].list.shape:
            new_node.attr["output_shapes"].list.shape.append(variable.shape)
    new_node.input[:] = [*loop.inputs, *(f"{zero.name}:output:0" for zero in zeros)]
    new_node.input.extend(control_inputs(loop.proto))
    new_node.attr.pop("_output_shapes", None)
    body = functions[loop.proto.attr["body"].func.name]
    body.results.extend(Result(carried.name, carried.kind, carried.tensor) for carried in variables)
    graph.rewrite(lambda node: [*zeros, new_node] if node is loop else None)
