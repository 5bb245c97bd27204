"""Makes long loops within one XLA program stop on Ctrl-C.

An IPU program between two exchanges is one launch, which checks no signals. A loop without feeds may run for hours in
it. So the condition of such a loop includes a call of the plugin (`program_calls.cc`). After a Ctrl-C the launch fails
there, between two iterations. The memory plan and the counters stay the same.

Loops are marked before some become chunks, of 20 ms each. The call hides from XLA how often the loop runs, which XLA
would write out for a very short one.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.custom_calls import callers_of, custom_call, rewrite_functions
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.ir.node_writer import FreshNames
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.loops.trip_count import trip_count
from tf_ipu_shim.tf_private.protos import function_pb2, types_pb2

_MAX_UNINTERRUPTED = 8  # iterations
_TARGET = "TfIpuShimGoesOn"


def mark_long_loops(functions: Functions) -> None:
    """Marks loops that may run for long: all without a known small trip count."""
    for name in functions.reached():
        graph = functions[name]
        if graph.ops.isdisjoint(vocabulary.LOOPS):
            continue
        for node in graph.nodes:
            if node.op not in vocabulary.LOOPS:
                continue
            trips = trip_count(graph, node, functions)
            if trips is None or trips > _MAX_UNINTERRUPTED:
                marked = copy_node(node.proto)
                marked.attr[vocabulary.LONG_ATTRIBUTE].b = True
                node.proto = marked


def make_interruptible(program: LoweredProgram) -> LoweredProgram:
    """Returns the program with marked loops that check for Ctrl-C."""
    conditions = {
        node.attr["cond"].func.name
        for function in program.functions
        for node in function.node_def
        if vocabulary.LONG_ATTRIBUTE in node.attr
    }
    if not conditions:
        return program
    functions = {function.signature.name: function for function in program.functions}

    def ask(function: function_pb2.FunctionDef, _: str) -> None:
        if function.signature.name in conditions:
            _check_interrupt(function)

    return rewrite_functions(program, callers_of(conditions, functions), ask, may_fail=True)


def _check_interrupt(condition: function_pb2.FunctionDef) -> None:
    """Makes a condition check for an interrupt."""
    (result,) = condition.ret
    call = custom_call(FreshNames(condition).unique("goes_on"), _TARGET, condition.ret[result], "")
    call.attr["result_dtypes"].list.type.append(types_pb2.DT_BOOL)
    call.attr["result_shapes"].list.shape.add()
    condition.node_def.append(call)
    condition.ret[result] = f"{call.name}:results:0"
