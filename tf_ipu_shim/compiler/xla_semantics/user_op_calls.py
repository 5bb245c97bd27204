"""Prepares users' Poplar ops: names the chip they are built for, and compiles them to custom calls in XLA programs."""

from __future__ import annotations

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.custom_calls import callers_of, rewrite_functions
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.xla_semantics import user_ops
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2


def set_targets(functions: Functions, target: str) -> None:
    """Names the chip that users' Poplar ops are built for, and keeps the ops' names through inlining."""

    def with_target(node: Node) -> list[node_def_pb2.NodeDef] | None:
        if node.op not in vocabulary.USER_OPS:
            return None
        copy = copy_node(node.proto)
        copy.attr["target"].s = target.encode()
        copy.attr["debug_name"].s = copy.attr["debug_name"].s or copy.name.encode()
        return [copy]

    for name in functions.reached():
        if not functions[name].ops.isdisjoint(vocabulary.USER_OPS):
            functions[name].rewrite(with_target)


def compile_user_ops(program: LoweredProgram) -> LoweredProgram:
    """Returns the program whose XLA programs call users' Poplar ops."""
    functions = {function.signature.name: function for function in program.functions}
    having = (name for name, function in functions.items() if any(user_ops.user_ops_in(function.node_def)))

    def change(function: function_pb2.FunctionDef, _: str) -> None:
        user_ops.replace_user_ops(function)

    return rewrite_functions(program, callers_of(having, functions), change, may_fail=True)
