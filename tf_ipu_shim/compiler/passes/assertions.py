"""`tf.Assert` in XLA programs: where its condition does not hold, the run ends with an InternalError, as on an IPU.

XLA's kernel for `Assert` compiles to nothing. In what runs, a custom call of the plugin (`assertions.cc`) stands for
it, in loops and branches too. What is planned and counted stays as it was: a check takes no memory worth counting. The
values that a script hands over for the message stay out of the program, as they would have to be computed in each run;
by kernels they are in the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tf_ipu_shim.compiler.ir.custom_calls import callers_of, program_call, with_changed
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

ASSERT = "Assert"
_TARGET = "TfIpuShimAssert"

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
    changed = asserting_functions({function.signature.name: function for function in program.functions})

    def check(function: function_pb2.FunctionDef, scope: str) -> None:
        constants = {node.name: node for node in function.node_def if node.op == "Const"}
        for node in function.node_def:
            if node.op == ASSERT:
                _check(node, constants, describe(scope, node))

    return with_changed(program, changed, check, may_fail=True)


def asserting_functions(functions: Mapping[str, function_pb2.FunctionDef]) -> set[str]:
    """The names of functions that assert, themselves or in one that they run.

    Args:
        functions: by name.
    """
    return callers_of(
        (name for name, one in functions.items() if any(node.op == ASSERT for node in one.node_def)), functions
    )


def _check(node: node_def_pb2.NodeDef, constants: Mapping[str, node_def_pb2.NodeDef], described: str) -> None:
    """Makes a custom call of an assert: it takes the condition, and has the message as its configuration."""
    values = [text for text in node.input if not text.startswith("^")]
    texts = " ".join(f"[{_text(value, constants)}]" for value in values[1:])
    check = program_call(node.name, _TARGET, values[0], f"assertion failed: {texts} Op {described}.")
    check.input.extend(text for text in node.input if text.startswith("^"))
    check.attr["has_side_effect"].b = True
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
