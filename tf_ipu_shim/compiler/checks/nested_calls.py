"""Refuses programs whose function calls nest too deep for XLA's compiler, which would crash the process.

It counts calls directly in each other's functions; a loop or branch in between restarts the count. Stock
`jit_compile=True` ends the process as well. Checked on TensorFlow 2.15.1 and 2.21.0: 19 work, 20 do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions

MAX_DEPTH = 19


def refuse_deep_nesting(diagnostics: Diagnostics, functions: Functions) -> None:
    """Raises if more than `MAX_DEPTH` function calls are nested."""
    level, innermost = set(functions.reached()), ""
    for _ in range(MAX_DEPTH + 1):
        callees = {called: (name, node) for name in level for node, called in _calls(functions, name)}
        if not callees:
            return
        level, innermost = set(callees), diagnostics.describe(*next(iter(callees.values())))
    raise errors_impl.InvalidArgumentError(
        None,
        None,
        f"More than {MAX_DEPTH} calls of functions are nested, and TensorFlow's compiler for XLA accepts no "
        f"more: {innermost} is one too many. Leave tf.function out of functions that a tf.function calls.",
    )


def _calls(functions: Functions, name: str) -> Iterator[tuple[Node, str]]:
    graph = functions[name]
    for node in graph.nodes if not graph.ops.isdisjoint(vocabulary.CALLS) else ():
        if node.op in vocabulary.CALLS:
            yield from ((node, called) for called in op_types.called_functions(node.proto) if called in functions)
