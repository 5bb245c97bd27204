"""What XLA programs call of the plugin while they run: custom calls, put in after a program is planned and counted."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_serial = itertools.count()


def program_call(name: str, target: str, condition: str, text: str) -> node_def_pb2.NodeDef:
    """An op that XLA makes a call of.

    Args:
        name: the op's.
        target: what the plugin registers it as.
        condition: the boolean that it is given.
        text: what else it is given.

    Returns:
        The op: without results, and without a side effect.
    """
    call = node_def_pb2.NodeDef(name=name, op="XlaCustomCallV2", input=[condition])
    call.attr["call_target_name"].s = target.encode()
    call.attr["backend_config"].s = text.encode()
    call.attr["has_side_effect"].b = False
    call.attr["operand_dtypes"].list.type.append(types_pb2.DT_BOOL)
    call.attr["result_dtypes"].list.SetInParent()
    call.attr["result_shapes"].list.SetInParent()
    return call


def with_changed(
    program: LoweredProgram,
    names: Collection[str],
    change: Callable[[function_pb2.FunctionDef, str], None],
    may_fail: bool = False,
) -> LoweredProgram:
    """The program with other functions within its XLA programs.

    Args:
        program: as XLA launches; stays as it is.
        names: the functions to change, and all that run one of these.
        change: is given a copy of each, and the traced function that it was made of.
        may_fail: whether these may fail while they run: then they must not have written to variables.

    Returns:
        What runs: the program itself where none of its XLA programs is among them.
    """
    programs = set(program.programs)
    if programs.isdisjoint(names):
        return program
    scopes = {**program.traced, **{cluster.function: cluster.scope for cluster in program.clusters}}
    renamed = _new_names(program, names)
    functions = []
    for function in program.functions:
        name = function.signature.name
        if name not in programs or name not in renamed:
            functions.append(_relaunching(function, renamed, may_fail))
        if name in renamed:
            functions.append(_changed(function, renamed, scopes.get(name, name), change))
    node = node_def_pb2.NodeDef()
    node.CopyFrom(program.node)
    _relaunch(node, renamed, may_fail)
    clusters = [
        dataclasses.replace(cluster, function=renamed.get(cluster.function, cluster.function))
        for cluster in program.clusters
    ]
    traced = {**program.traced, **{made: scopes.get(name, name) for name, made in renamed.items()}}
    return dataclasses.replace(program, node=node, functions=functions, clusters=clusters, traced=traced)


def _new_names(program: LoweredProgram, names: Collection[str]) -> dict[str, str]:
    """New names of functions within XLA programs.

    Ops of the host may call what XLA programs call, and TensorFlow knows these since the lowering asked.
    """
    functions = {function.signature.name: function for function in program.functions}
    launched = [name for name in program.programs if name in functions]
    called = reachable(launched, lambda name: (one for one in _callees(functions[name]) if one in functions))
    return {name: f"{name}_calling_{next(_serial)}" for name in called if name in names}


def callers_of(names: Iterable[str], functions: Mapping[str, function_pb2.FunctionDef]) -> set[str]:
    """These functions, and all that run one of them.

    Args:
        names: of functions.
        functions: all by name.
    """
    callers: dict[str, list[str]] = {}
    for name, function in functions.items():
        for called in _callees(function):
            callers.setdefault(called, []).append(name)
    return set(reachable(names, lambda name: callers.get(name, ())))


def _callees(function: function_pb2.FunctionDef) -> list[str]:
    return [called.name for node in function.node_def for _, called in op_types.function_values(node)]


def _changed(
    function: function_pb2.FunctionDef,
    renamed: Mapping[str, str],
    scope: str,
    change: Callable[[function_pb2.FunctionDef, str], None],
) -> function_pb2.FunctionDef:
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    change(copy, scope)
    copy.signature.name = renamed[function.signature.name]
    for node in copy.node_def:
        for _, called in op_types.function_values(node):
            called.name = renamed.get(called.name, called.name)
    return copy


def _relaunching(
    function: function_pb2.FunctionDef, renamed: Mapping[str, str], may_fail: bool
) -> function_pb2.FunctionDef:
    """The function with launches of the programs that have other names now."""
    if all(node.op != vocabulary.LAUNCH for node in function.node_def):
        return function
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    for node in copy.node_def:
        _relaunch(node, renamed, may_fail)
    return copy


def _relaunch(node: node_def_pb2.NodeDef, renamed: Mapping[str, str], may_fail: bool) -> None:
    if node.op != vocabulary.LAUNCH or node.attr["function"].func.name not in renamed:
        return
    launched = node.attr["function"].func
    launched.name = renamed[launched.name]
    if may_fail:
        node.attr.pop(vocabulary.IN_PLACE_ATTRIBUTE, None)
