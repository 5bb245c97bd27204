"""Creates XLA custom calls of the plugin, and adds them to copies of a planned program's functions."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import copy_function, copy_node
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_serial = itertools.count()


def custom_call(name: str, target: str, condition: str, config: str) -> node_def_pb2.NodeDef:
    """Returns an op that XLA compiles to a custom call of the plugin."""
    call = node_def_pb2.NodeDef(name=name, op="XlaCustomCallV2", input=[condition])
    call.attr["call_target_name"].s = target.encode()
    call.attr["backend_config"].s = config.encode()
    call.attr["has_side_effect"].b = False
    call.attr["operand_dtypes"].list.type.append(types_pb2.DT_BOOL)
    call.attr["result_dtypes"].list.SetInParent()
    call.attr["result_shapes"].list.SetInParent()
    return call


def rewrite_functions(
    program: LoweredProgram,
    names: Collection[str],
    change: Callable[[function_pb2.FunctionDef, str], None],
    may_fail: bool = False,
) -> LoweredProgram:
    """Returns the program with changed copies of functions in its XLA programs."""
    programs = set(program.programs)
    if programs.isdisjoint(names):
        return program
    scopes = {**program.traced, **{cluster.function: cluster.scope for cluster in program.clusters}}
    renamed = _new_names(program, names)
    functions = []
    for function in program.functions:
        name = function.signature.name
        if name not in programs or name not in renamed:
            functions.append(_redirect_launches(function, renamed, may_fail))
        if name in renamed:
            functions.append(_changed(function, renamed, scopes.get(name, name), change))
    node = copy_node(program.node)
    _redirect_launch(node, renamed, may_fail)
    clusters = [
        dataclasses.replace(cluster, function=renamed.get(cluster.function, cluster.function))
        for cluster in program.clusters
    ]
    traced = {**program.traced, **{new_function: scopes.get(name, name) for name, new_function in renamed.items()}}
    return dataclasses.replace(program, node=node, functions=functions, clusters=clusters, traced=traced)


def _new_names(program: LoweredProgram, names: Collection[str]) -> dict[str, str]:
    """Returns new names for functions within XLA programs.

    Host ops may call the functions that XLA programs call; TensorFlow has had these since the lowering.
    """
    functions = {function.signature.name: function for function in program.functions}
    launched = [name for name in program.programs if name in functions]
    called = reachable(launched, lambda name: (callee for callee in callees(functions[name]) if callee in functions))
    return {name: f"{name}_calling_{next(_serial)}" for name in called if name in names}


def callers_of(names: Iterable[str], functions: Mapping[str, function_pb2.FunctionDef]) -> set[str]:
    """Returns these functions and all functions that run one of them."""
    callers: dict[str, list[str]] = {}
    for name, function in functions.items():
        for called in callees(function):
            callers.setdefault(called, []).append(name)
    return set(reachable(names, lambda name: callers.get(name, ())))


def callees(function: function_pb2.FunctionDef) -> list[str]:
    """Returns the functions that a function's ops run."""
    return [called.name for node in function.node_def for _, called in op_types.function_values(node)]


def _changed(
    function: function_pb2.FunctionDef,
    renamed: Mapping[str, str],
    scope: str,
    change: Callable[[function_pb2.FunctionDef, str], None],
) -> function_pb2.FunctionDef:
    copy = copy_function(function)
    change(copy, scope)
    copy.signature.name = renamed[function.signature.name]
    for node in copy.node_def:
        for _, called in op_types.function_values(node):
            called.name = renamed.get(called.name, called.name)
    return copy


def _redirect_launches(
    function: function_pb2.FunctionDef, renamed: Mapping[str, str], may_fail: bool
) -> function_pb2.FunctionDef:
    """Returns the function with its launches redirected to renamed programs."""
    if all(node.op != vocabulary.LAUNCH for node in function.node_def):
        return function
    copy = copy_function(function)
    for node in copy.node_def:
        _redirect_launch(node, renamed, may_fail)
    return copy


def _redirect_launch(node: node_def_pb2.NodeDef, renamed: Mapping[str, str], may_fail: bool) -> None:
    if node.op != vocabulary.LAUNCH or node.attr["function"].func.name not in renamed:
        return
    launched = node.attr["function"].func
    launched.name = renamed[launched.name]
    if may_fail:
        node.attr.pop(vocabulary.IN_PLACE_ATTRIBUTE, None)
