"""Inlines function calls in functions that run op by op.

TensorFlow does that too when it makes a function ready to run. It adds an `Identity` for each argument and result, and
ops that do nothing if the call begins and ends. Its rewriting would remove them again. In a small pipeline they were
more than half of the ops that run (see `kernels`).

Control outputs of a call become control outputs of the ops that its function must run. Control inputs of the call
become control inputs of its function's stateful ops; the others wait for their operands.
"""

from __future__ import annotations

import collections
from collections.abc import Container, Iterable, Mapping

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import (
    awaited_nodes,
    copy_node,
    data_inputs,
    is_argument,
    producer_name,
    result_index,
    with_producer,
)
from tf_ipu_shim.compiler.ir.node_writer import FreshNames
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_MAX_DIRECT_EDGES = 4  # edges that an op between them would not save


def inline_calls(
    functions: Iterable[function_pb2.FunctionDef], node: node_def_pb2.NodeDef
) -> list[function_pb2.FunctionDef]:
    """Inlines calls in these functions; returns the functions that are still needed."""
    inliner = _Inliner({function.signature.name: function for function in functions})
    return [inliner.flat(name) for name in reachable(referenced_functions([node], inliner.functions), inliner.needed)]


def referenced_functions(nodes: Iterable[node_def_pb2.NodeDef], functions: Container[str]) -> list[str]:
    """Returns which of some functions ops refer to, in any attribute."""
    return [
        function.name
        for node in nodes
        for attribute in op_types.function_attributes(node.op)
        for function in op_types.functions_in(node.attr[attribute])
        if function.name in functions
    ]


class _Inliner:
    """Inlines functions, each once for all its callers."""

    def __init__(self, functions: Mapping[str, function_pb2.FunctionDef]) -> None:
        self.functions = functions
        self._flat: dict[str, function_pb2.FunctionDef] = {}
        self._begun: set[str] = set()

    def needed(self, name: str) -> list[str]:
        """Returns the functions that one still needs after inlining."""
        return referenced_functions(self.flat(name).node_def, self.functions)

    def flat(self, name: str) -> function_pb2.FunctionDef:
        """Returns a function with the functions it calls inlined."""
        if name not in self._flat:
            self._begun.add(name)
            self._flat[name] = self._flattened(self.functions[name])
            self._begun.discard(name)
        return self._flat[name]

    def _flattened(self, function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
        calls = {node.name: self.flat(called) for node in function.node_def if (called := self._called(node))}
        return _CallInliner(function, calls).run() if calls else function

    def _called(self, node: node_def_pb2.NodeDef) -> str:
        """Returns the function to inline for an op; empty for other ops and recursion."""
        if node.op not in vocabulary.CALLS:
            return ""
        name = node.attr["f"].func.name
        return name if name in self.functions and name not in self._begun else ""


class _CallInliner:
    """Inlines the calls of one function."""

    def __init__(self, function: function_pb2.FunctionDef, calls: Mapping[str, function_pb2.FunctionDef]) -> None:
        self._function = function
        self._calls = calls
        self._made = function_pb2.FunctionDef()
        self._nodes = {node.name: node for node in function.node_def}
        self._fresh = FreshNames(function)
        # By call, the names that its function's ops get, and the place of each argument among its inputs.
        self._names = {
            name: {node.name: self._fresh.unique(f"{name}/{node.name}") for node in called.node_def}
            for name, called in calls.items()
        }
        self._places = {
            name: {argument.name: index for index, argument in enumerate(called.signature.input_arg)}
            for name, called in calls.items()
        }
        self._waiting = collections.Counter(
            name for node in function.node_def for name in awaited_nodes(node) if name in calls
        )
        self._ends: dict[str, list[str]] = {}

    def run(self) -> function_pb2.FunctionDef:
        """Returns the function with all calls inlined."""
        output_function, function = self._made, self._function
        output_function.CopyFrom(function)
        del output_function.node_def[:]
        for node in function.node_def:
            if node.name in self._calls:
                self._inline(node, self._calls[node.name])
            else:
                output_function.node_def.append(
                    copy_node(node, [*map(self._tensor, data_inputs(node)), *self._controls(node)])
                )
        for result, tensor_name in function.ret.items():
            output_function.ret[result] = self._tensor(tensor_name)
        del output_function.signature.control_output[:]
        output_function.control_ret.clear()
        for name in function.signature.control_output:
            for end in self._after(function.control_ret[name]):
                if end not in output_function.control_ret:
                    output_function.signature.control_output.append(end)
                    output_function.control_ret[end] = end
        return output_function

    def _inline(self, call: node_def_pb2.NodeDef, called: function_pb2.FunctionDef) -> None:
        names, input_index, inputs = self._names[call.name], self._places[call.name], data_inputs(call)

        def tensor(tensor_name: str) -> str:
            if is_argument(tensor_name):
                return self._tensor(inputs[input_index[tensor_name]])
            return with_producer(tensor_name, names[producer_name(tensor_name)])

        before = self._begin(call, called)
        for node in called.node_def:
            added = self._made.node_def.add()
            added.CopyFrom(node)
            added.name = names[node.name]
            controls = [f"^{names[name]}" for name in awaited_nodes(node)]
            if op_types.is_stateful(node.op):
                controls.extend(before)
            added.input[:] = [*map(tensor, data_inputs(node)), *dict.fromkeys(controls)]

    def _begin(self, call: node_def_pb2.NodeDef, called: function_pb2.FunctionDef) -> list[str]:
        """Returns the control inputs of an inlined call's ops: one join op if that saves edges."""
        controls = self._controls(call)
        with_effects = sum(op_types.is_stateful(node.op) for node in called.node_def)
        if len(controls) < 2 or len(controls) * with_effects <= _MAX_DIRECT_EDGES:
            return controls
        return [f"^{self._add_join(call, 'begin', controls)}"]

    def _controls(self, node: node_def_pb2.NodeDef) -> list[str]:
        controls = [end for name in awaited_nodes(node) for end in self._after(name)]
        return [f"^{name}" for name in dict.fromkeys(controls)]

    def _after(self, name: str) -> list[str]:
        """Returns the ops that have run once an op has run."""
        if name not in self._calls:
            return [name]
        if name not in self._ends:
            called, call = self._calls[name], self._nodes[name]
            ends = [self._names[name][called.control_ret[output]] for output in called.signature.control_output]
            ends = list(dict.fromkeys(ends)) or [*map(producer_name, self._controls(call))]
            if len(ends) > 1 and len(ends) * self._waiting[name] > _MAX_DIRECT_EDGES:
                ends = [self._add_join(call, "end", [f"^{end}" for end in ends])]
            self._ends[name] = ends
        return self._ends[name]

    def _tensor(self, tensor_name: str) -> str:
        """Returns the tensor that replaces another: for a call's result, the inlined function's."""
        while (call := producer_name(tensor_name)) in self._calls:
            called = self._calls[call]
            result = called.signature.output_arg[result_index(tensor_name)].name
            returned = called.ret[result]
            if not is_argument(returned):
                return with_producer(returned, self._names[call][producer_name(returned)])
            tensor_name = self._nodes[call].input[self._places[call][returned]]
        return tensor_name

    def _add_join(self, call: node_def_pb2.NodeDef, name: str, controls: Iterable[str]) -> str:
        """Adds a NoOp that joins control inputs."""
        name = self._fresh.unique(f"{call.name}/{name}")
        node = self._made.node_def.add(name=name, op="NoOp", device=call.device, input=controls)
        if vocabulary.CHIP_ATTRIBUTE in call.attr:
            node.attr[vocabulary.CHIP_ATTRIBUTE].CopyFrom(call.attr[vocabulary.CHIP_ATTRIBUTE])
        return name
