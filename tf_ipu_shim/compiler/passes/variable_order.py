"""Adds control dependencies that keep reads and writes of a variable in script order.

XLA schedules an op that calls a function as soon as its inputs are ready, even if the function reads variables. In
graphs of TensorFlow 1 it could then read a variable before an earlier loop writes it.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.custom_calls import callers_of, rewrite_functions
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.tf_private.protos import function_pb2

_CALLING = vocabulary.CALLS | vocabulary.LOOPS | vocabulary.BRANCHES


def access_orders(graph: FunctionGraph) -> dict[str, list[str]]:
    """Maps nodes to control inputs that order accesses to each variable, with reads between writes."""
    written: dict[str, str] = {}  # the last op that may have written to a variable
    read: dict[str, list[str]] = {}  # the ops that read it since
    controls_of: dict[str, list[str]] = {}
    for node in graph.nodes:
        variables = [
            tensor_name
            for tensor_name in dict.fromkeys(node.inputs)
            if graph.arguments.get(tensor_name) == op_types.RESOURCE
        ]
        for variable in variables:
            before = [written[variable]] if variable in written else []
            if node.op == vocabulary.READ_VARIABLE:
                read.setdefault(variable, []).append(node.name)
            else:
                before.extend(read.pop(variable, ()))
                written[variable] = node.name
            controls_of.setdefault(node.name, []).extend(f"^{name}" for name in before)
    return controls_of


def order_variable_accesses(program: LoweredProgram) -> LoweredProgram:
    """Returns the program whose XLA programs access variables in script order."""
    functions = {function.signature.name: function for function in program.functions}
    orders = {name: ordered for name, function in functions.items() if (ordered := _calling_orders(function))}

    def change(function: function_pb2.FunctionDef, _: str) -> None:
        controls = orders.get(function.signature.name, {})
        for node in function.node_def:
            node.input.extend(
                tensor_name for tensor_name in controls.get(node.name, ()) if tensor_name not in node.input
            )

    return rewrite_functions(program, callers_of(orders, functions), change) if orders else program


def _calling_orders(function: function_pb2.FunctionDef) -> dict[str, list[str]]:
    if not any(node.op in _CALLING for node in function.node_def):
        return {}
    return {name: controls for name, controls in access_orders(FunctionGraph.parse(function)).items() if controls}
