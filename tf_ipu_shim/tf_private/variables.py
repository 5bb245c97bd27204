"""Imports TensorFlow internals of resource variables and variable scopes."""

from __future__ import annotations

from typing import Any

from tensorflow.python.ops import (
    gen_resource_variable_ops,  # reads and writes of a handle
    ref_variable,  # RefVariable, the class
    resource_variable_ops,  # ResourceVariable's classes, to know and derive them
    variable_scope,  # the scope that get_variable is in
    variable_v1,  # VariableV1, the class of version 1
    variables,  # Variable, the class of version 2
)


def shared_name(variable: resource_variable_ops.BaseResourceVariable) -> Any:
    """Returns a variable's name as its handle has it."""
    return variable._shared_name


def unique_id(variable: resource_variable_ops.BaseResourceVariable, default: Any = None) -> Any:
    """Returns the identity of a variable within the process."""
    return getattr(variable, "_unique_id", default)


def in_graph_mode(variable: resource_variable_ops.BaseResourceVariable, default: Any = False) -> Any:
    """Returns whether a variable was made in a graph."""
    return getattr(variable, "_in_graph_mode", default)


def set_use_resource(scope: variable_scope.VariableScope, value: bool | None) -> None:
    """Says whether a scope makes resources, None included, which the scope's own method refuses."""
    scope._use_resource = value


def take_resource_of(variable: resource_variable_ops.BaseResourceVariable, source: Any) -> None:
    """Makes a variable use the resource of another, in its strategy."""
    variable._handle, variable._distribute_strategy = source._handle, source._distribute_strategy


def reference(variable: ref_variable.RefVariable) -> Any:
    """Returns the reference that a variable of TensorFlow 1 is."""
    return variable._ref()


def strategy_of(variable: resource_variable_ops.BaseResourceVariable, default: Any) -> Any:
    """Returns the strategy that a variable was made in the scope of; None: it was made in none."""
    return getattr(variable, "_distribute_strategy", default)
