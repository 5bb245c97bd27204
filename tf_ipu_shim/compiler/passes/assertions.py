"""Compiles `tf.Assert` in XLA programs to a check that ends the run with an InternalError.

XLA's kernel for `Assert` compiles to nothing. In executed programs, a custom call of the plugin (`assertions.cc`)
replaces it, in loops and branches too. The memory plan and the counters stay the same: a check needs little memory. The
values that a script passes for the message are left out of the program, as each run would have to compute them. In mode
`kernels` they are in the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tf_ipu_shim.compiler.ir.custom_calls import callers_of, custom_call, rewrite_functions
from tf_ipu_shim.compiler.ir.node_defs import control_inputs, data_inputs, producer_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

ASSERT = "Assert"
_TARGET = "TfIpuShimAssert"

# An op for a message, by the traced function and the node.
Describe = Callable[[str, node_def_pb2.NodeDef], str]


def compile_assertions(program: LoweredProgram, describe: Describe) -> LoweredProgram:
    """Returns the program with assertions that stop it.

    Source: docs/reference/facts.md, section "tf.Assert".
    """
    changed = asserting_functions({function.signature.name: function for function in program.functions})

    def check(function: function_pb2.FunctionDef, scope: str) -> None:
        constants = {node.name: node for node in function.node_def if node.op == "Const"}
        for node in function.node_def:
            if node.op == ASSERT:
                _check(node, constants, describe(scope, node))

    return rewrite_functions(program, changed, check, may_fail=True)


def asserting_functions(functions: Mapping[str, function_pb2.FunctionDef]) -> set[str]:
    """Returns the names of functions that assert, themselves or in functions they run."""
    return callers_of(
        (name for name, function in functions.items() if any(node.op == ASSERT for node in function.node_def)),
        functions,
    )


def _check(node: node_def_pb2.NodeDef, constants: Mapping[str, node_def_pb2.NodeDef], described: str) -> None:
    """Turns an assert into a custom call with its condition as input and the message as configuration."""
    values = data_inputs(node)
    messages = " ".join(f"[{_text(value, constants)}]" for value in values[1:])
    check = custom_call(node.name, _TARGET, values[0], f"assertion failed: {messages} Op {described}.")
    check.input.extend(control_inputs(node))
    check.attr["has_side_effect"].b = True
    node.CopyFrom(check)


def _text(tensor: str, constants: Mapping[str, node_def_pb2.NodeDef]) -> str:
    """Returns a message's text for a tensor: a constant's value."""
    constant = constants.get(producer_name(tensor))
    if constant is None:
        return "..."
    value = tensor_util.MakeNdarray(constant.attr["value"].tensor)
    if value.ndim == 0 and value.dtype == object:
        return value.item().decode(errors="replace")
    return str(value)
