"""`tf.Assert` in XLA programs: where its condition does not hold, the run ends with an InternalError, as on an IPU.

XLA's kernel for `Assert` compiles to nothing. In what runs, a custom call of the plugin (`assertions.cc`) stands for
it, in loops and branches too. What is planned and counted stays as it was: a check takes no memory worth counting. The
values that a script hands over for the message stay out of the program, as they would have to be computed in each run;
by kernels they are in the message.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

from tensorflow.core.framework import function_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import tensor_util

from tf_ipu_shim.lowering import op_types, vocabulary
from tf_ipu_shim.lowering.program import LoweredProgram
from tf_ipu_shim.lowering.reachable import reachable

ASSERT = "Assert"
_TARGET = b"TfIpuShimAssert"
_CUSTOM_CALL = "XlaCustomCallV2"
_serial = itertools.count()

# An op for a message, by the traced function and the node.
Describe = Callable[[str, node_def_pb2.NodeDef], str]


def stopping(program: LoweredProgram, describe: Describe) -> LoweredProgram:
    """The program with asserts that stop it.

    Args:
        program: as XLA launches; stays as it is.
        describe: gives the text by which an error names an op.

    Returns:
        What runs: the program itself where nothing asserts.

    Source: docs/facts.md, section "tf.Assert".
    """
    functions = {function.signature.name: function for function in program.functions}
    asserting = asserting_functions(functions)
    programs = set(program.programs)
    if asserting.isdisjoint(programs):
        return program
    scopes = {**program.traced, **{cluster.function: cluster.scope for cluster in program.clusters}}
    # New names: ops of the host may call what XLA programs call, and TensorFlow knows these since the lowering asked.
    launched = (name for name in functions if name in programs)
    called = reachable(launched, lambda name: (one for one in _callees(functions[name]) if one in functions))
    names = {name: f"{name}_stopping_{next(_serial)}" for name in called if name in asserting}
    made = [_stopping(functions[name], names, scopes.get(name, name), describe) for name in names]
    kept = [
        _relaunching(function, names) for name, function in functions.items() if name not in programs & names.keys()
    ]
    node = node_def_pb2.NodeDef()
    node.CopyFrom(program.node)
    _relaunch(node, names)
    clusters = [
        dataclasses.replace(cluster, function=names.get(cluster.function, cluster.function))
        for cluster in program.clusters
    ]
    return dataclasses.replace(program, node=node, functions=[*kept, *made], clusters=clusters)


def _relaunching(function: function_pb2.FunctionDef, names: Mapping[str, str]) -> function_pb2.FunctionDef:
    """The function with launches of the programs that have other names now."""
    if all(node.op != vocabulary.LAUNCH for node in function.node_def):
        return function
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    for node in copy.node_def:
        _relaunch(node, names)
    return copy


def _relaunch(node: node_def_pb2.NodeDef, names: Mapping[str, str]) -> None:
    if node.op == vocabulary.LAUNCH:
        launched = node.attr["function"].func
        launched.name = names.get(launched.name, launched.name)


def _callees(function: function_pb2.FunctionDef) -> list[str]:
    return [called.name for node in function.node_def for _, called in op_types.function_values(node)]


def asserting_functions(functions: Mapping[str, function_pb2.FunctionDef]) -> set[str]:
    """The names of functions that assert, themselves or in one that they run.

    Args:
        functions: by name.
    """
    callers: dict[str, list[str]] = {}
    having = []
    for name, function in functions.items():
        for called in _callees(function):
            callers.setdefault(called, []).append(name)
        if any(node.op == ASSERT for node in function.node_def):
            having.append(name)
    return set(reachable(having, lambda name: callers.get(name, ())))


def _stopping(
    function: function_pb2.FunctionDef, names: Mapping[str, str], scope: str, describe: Describe
) -> function_pb2.FunctionDef:
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    copy.signature.name = names[function.signature.name]
    constants = {node.name: node for node in function.node_def if node.op == "Const"}
    for node in copy.node_def:
        if node.op == ASSERT:
            _check(node, constants, describe(scope, node))
        for _, called in op_types.function_values(node):
            called.name = names.get(called.name, called.name)
    return copy


def _check(node: node_def_pb2.NodeDef, constants: Mapping[str, node_def_pb2.NodeDef], described: str) -> None:
    """Makes a custom call of an assert: it takes the condition, and has the message as its configuration."""
    values = [text for text in node.input if not text.startswith("^")]
    texts = " ".join(f"[{_text(value, constants)}]" for value in values[1:])
    check = node_def_pb2.NodeDef(name=node.name, op=_CUSTOM_CALL, input=[values[0]])
    check.input.extend(text for text in node.input if text.startswith("^"))
    check.attr["call_target_name"].s = _TARGET
    check.attr["backend_config"].s = f"assertion failed: {texts} Op {described}.".encode()
    check.attr["has_side_effect"].b = True
    check.attr["operand_dtypes"].list.type.append(types_pb2.DT_BOOL)
    check.attr["result_dtypes"].list.SetInParent()
    check.attr["result_shapes"].list.SetInParent()
    node.CopyFrom(check)


def _text(tensor: str, constants: Mapping[str, node_def_pb2.NodeDef]) -> str:
    """What a message says of a tensor: a constant's value."""
    constant = constants.get(tensor.partition(":")[0])
    if constant is None:
        return "..."
    value = tensor_util.MakeNdarray(constant.attr["value"].tensor)
    if value.ndim == 0 and value.dtype == object:
        return value.item().decode(errors="replace")
    return str(value)
