"""Imports TensorFlow internals of control flow: `cond`, `while` and `switch_case` as ops and as functions."""

from __future__ import annotations

from typing import Any

from tensorflow.python.ops import (
    cond,  # the conditional that autograph calls
    cond_v2,  # the conditional of functions, in a graph of TensorFlow 1 too
    control_flow_assert,  # Assert with its summary of many elements
    control_flow_ops,  # XLAControlFlowContext: what is inside compiles
    control_flow_util,  # whether control flow is functions, and a graph XLA's
    control_flow_util_v2,  # the functions of a conditional or loop
    control_flow_v2_func_graphs,  # the graphs of branches and bodies
    while_v2,  # the loop of functions, in a graph of TensorFlow 1 too
)

BranchGradient = cond_v2._CondGradFuncGraph  # the graph of the gradient of a branch


def branch_of(gradient: Any) -> Any:
    """Returns the graph of the branch that a gradient is of."""
    return gradient._forward_graph
