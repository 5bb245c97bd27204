"""Lowers While loops to Switch/Merge frames in functions that run op by op.

TensorFlow does that too when it makes a function ready to run (`_lower_using_switch_merge`). It adds three `Identity`
ops for each loop variable, which run in each iteration, and keeps variables that nothing needs.

A variable that the body returns unchanged enters the frame once. Every other variable is merged with its value of the
previous iteration and switched: into the body, or out of the frame. Ops after the branch of a switch that was not taken
do not run. An op of the body that depends on no switch therefore waits for one. An iteration begins once the ops with
side effects of the previous iteration have run, which keeps side effects in order.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.node_defs import (
    control_inputs,
    copy_node,
    data_inputs,
    is_argument,
    is_control,
    producer_name,
    with_producer,
)
from tf_ipu_shim.compiler.ir.node_writer import FreshNames
from tf_ipu_shim.compiler.passes.dead_code_elimination import graph_with_effects
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_MAX_DIRECT_EDGES = 8  # edges that an op between them would not save


def lower_loops(
    function: function_pb2.FunctionDef, functions: Mapping[str, function_pb2.FunctionDef]
) -> function_pb2.FunctionDef:
    """Returns a function whose loops are lowered to frames."""
    if not any(_can_be_lowered(node, functions) for node in function.node_def):
        return function
    return _LoopLowering(function, functions).run()


def _can_be_lowered(node: node_def_pb2.NodeDef, functions: Mapping[str, function_pb2.FunctionDef]) -> bool:
    if node.op not in vocabulary.LOOPS or "_lower_using_switch_merge" not in node.attr:
        return False
    condition, body = (functions.get(name) for name in op_types.called_functions(node))
    if condition is None or body is None:
        return False
    unchanged = _invariant_variables(body)
    changing = [argument.type for index, argument in enumerate(body.signature.input_arg) if index not in unchanged]
    return bool(changing) and op_types.RESOURCE not in changing


def _invariant_variables(body: function_pb2.FunctionDef) -> list[int]:
    """Returns the loop variables that a body returns unchanged."""
    arguments, results = body.signature.input_arg, body.signature.output_arg
    return [index for index, result in enumerate(results) if body.ret[result.name] == arguments[index].name]


class _LoopLowering:
    """Lowers the loops of one function."""

    def __init__(self, function: function_pb2.FunctionDef, functions: Mapping[str, function_pb2.FunctionDef]) -> None:
        self._function = function
        self._functions = functions
        self._lowered = function_pb2.FunctionDef()
        self.names = FreshNames(function)
        self._new_results: dict[str, str] = {}  # the tensors that replace results of loops
        self._ends: dict[str, str] = {}  # the op to wait for instead of a loop

    def run(self) -> function_pb2.FunctionDef:
        """Returns the function with its loops lowered to frames."""
        output_function, function = self._lowered, self._function
        output_function.CopyFrom(function)
        del output_function.node_def[:]
        self.add_nodes(
            function.node_def, [*function.ret.values(), *(f"^{name}" for name in function.control_ret.values())]
        )
        for node in output_function.node_def:
            node.input[:] = [self._current_name(tensor_name) for tensor_name in node.input]
        for result, tensor_name in function.ret.items():
            output_function.ret[result] = self._current_name(tensor_name)
        for name, waited in function.control_ret.items():
            output_function.control_ret[name] = self._current_name(f"^{waited}")[1:]
        self._remove_unused_entries()
        return output_function

    def _remove_unused_entries(self) -> None:
        """Removes Enter ops whose results nothing uses.

        Each time an op has run, TensorFlow's executor checks whether its iteration has ended, and begins the next one.
        An iteration cannot end before all variables have entered. If no op uses the variable that enters last, that
        check never happens: the loop then has no results, without an error.
        """
        output_function = self._lowered
        users = collections.Counter(
            producer_name(tensor_name) for node in output_function.node_def for tensor_name in node.input
        )
        entries = {node.name: node for node in output_function.node_def if node.op == "Enter"}
        pending = [name for name in entries if not users[name]]
        unused = set(pending)
        while pending:
            for tensor_name in entries[pending.pop()].input:
                source = producer_name(tensor_name)
                users[source] -= 1
                if source in entries and not users[source]:
                    pending.append(source)
                    unused.add(source)
        if not unused:
            return
        remaining = [node for node in output_function.node_def if node.name not in unused]
        del output_function.node_def[:]
        output_function.node_def.extend(remaining)

    def add_nodes(self, nodes: Iterable[node_def_pb2.NodeDef], returned: Iterable[str]) -> None:
        """Adds ops, and lowers the loops among them."""
        nodes = list(nodes)
        used = {tensor_name for node in nodes for tensor_name in node.input}.union(returned)
        for node in nodes:
            if _can_be_lowered(node, self._functions):
                condition, body = (_LoopFunction(self._functions[name]) for name in op_types.called_functions(node))
                _Frame(self, node, condition, body, used)
            else:
                self._lowered.node_def.add().CopyFrom(node)

    def invariant_results(self, node: node_def_pb2.NodeDef) -> list[int]:
        """Returns the results of a loop that equal its inputs because the loop does not change them."""
        if not _can_be_lowered(node, self._functions):
            return []
        return _invariant_variables(self._functions[node.attr["body"].func.name])

    def add(self, name: str, op: str, inputs: Iterable[str], like: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
        """Adds an op at the location of another one."""
        node: node_def_pb2.NodeDef = self._lowered.node_def.add(name=self.names.unique(name), op=op, device=like.device)
        node.input.extend(inputs)
        if vocabulary.CHIP_ATTRIBUTE in like.attr:
            node.attr[vocabulary.CHIP_ATTRIBUTE].CopyFrom(like.attr[vocabulary.CHIP_ATTRIBUTE])
        return node

    def replace_result(self, tensor: str, result: str) -> None:
        """Records which tensor replaces a loop's result."""
        self._new_results[result] = tensor

    def record_end(self, name: str, loop: str) -> None:
        """Records the op that runs last in a loop."""
        self._ends[loop] = name

    def _current_name(self, tensor_name: str) -> str:
        """Returns the tensor, or control input, that replaces one of a lowered loop."""
        if is_control(tensor_name):
            name = producer_name(tensor_name)
            return f"^{self._ends.get(name, name)}"
        while tensor_name in self._new_results:
            tensor_name = self._new_results[tensor_name]
        return tensor_name


class _LoopFunction:
    """The condition or the body of a loop.

    Sets of loop variables are bit sets: bit i is variable i.

    Attributes:
        needed_by_effects: the loop variables that ops with side effects depend on.
        ends: the ops that have to run in each iteration.
    """

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self.graph = graph = graph_with_effects(function)
        self.ends = [function.control_ret[name] for name in function.signature.control_output]
        self._arguments = {argument: 1 << index for index, argument in enumerate(graph.arguments)}
        self._variables: dict[Node, int] = {}  # the loop variables that each op depends on
        for node in graph.nodes:
            variables = self.variables_of(node.inputs)
            for control in node.controls:
                variables |= self._variables[control]
            self._variables[node] = variables
        self.needed_by_effects = 0
        for node in graph.control_returns:
            self.needed_by_effects |= self._variables[node]

    def variables_of(self, tensor_names: Iterable[str]) -> int:
        """Returns the loop variables that tensors depend on."""
        variables = 0
        for tensor_name in tensor_names:
            producer = self.graph.producer(tensor_name)
            variables |= self._arguments[tensor_name] if producer is None else self._variables[producer]
        return variables

    def needed(self, results: Iterable[str]) -> list[Node]:
        """Returns the ops with effects or that results need, in topological order."""
        needed = self.graph.needed(results, self.graph.control_returns)
        return [node for node in self.graph.nodes if node in needed]


class _Frame:
    """Adds the ops of one loop's frame."""

    def __init__(
        self,
        lowering: _LoopLowering,
        loop: node_def_pb2.NodeDef,
        condition: _LoopFunction,
        body: _LoopFunction,
        used: Collection[str],
    ) -> None:
        self._lowering, self._loop, self._used = lowering, loop, used
        self._condition, self._body = condition, body
        self._types = list(loop.attr["T"].list.type)
        self._parallel = loop.attr["parallel_iterations"].i if "parallel_iterations" in loop.attr else 10
        self._initial = data_inputs(loop)
        self._returns = self._body.graph.returns
        self._changes = [result != argument for argument, result in zip(self._body.graph.arguments, self._returns)]
        needed = self._needed_variables()
        self._entering = [index for index in range(len(self._initial)) if needed >> index & 1]
        self._changing = [index for index in self._entering if self._changes[index]]
        merges, entries = self._enter()
        test = self._add_condition(entries)
        inside = self._switch(entries, test)
        self._add_body(merges, inside)

    def _needed_variables(self) -> int:
        """Returns the loop variables that are used outside or that the loop needs."""
        values = self._condition.variables_of(self._condition.graph.returns)
        values |= self._condition.needed_by_effects | self._body.needed_by_effects
        for index in range(len(self._initial)):
            if self._result(index) in self._used:
                values |= 1 << index
        values = self._with_sources(values)
        if not any(values >> index & 1 for index, changes in enumerate(self._changes) if changes):
            values = self._with_sources(values | 1 << self._changes.index(True))  # one that orders the iterations
        return values

    def _with_sources(self, values: int) -> int:
        """Returns these loop variables and those that the body computes them from."""
        while True:
            more = values | self._body.variables_of(
                tensor_name for index, tensor_name in enumerate(self._returns) if values >> index & 1
            )
            if more == values:
                return values
            values = more

    def _result(self, index: int) -> str:
        return f"{self._loop.name}:output:{index}"

    def _enter(self) -> tuple[dict[int, node_def_pb2.NodeDef], dict[int, str]]:
        """Adds Enter and Merge ops; returns the merges and the tensor of each loop variable."""
        controls = self._joined_controls(control_inputs(self._loop), len(self._entering), "begin")
        merges, entries = {}, {}
        for index in self._entering:
            enter = self._op("enter", index, "Enter", [self._initial[index], *controls])
            enter.attr["frame_name"].s = self._loop.name.encode()
            enter.attr["is_constant"].b = not self._changes[index]
            enter.attr["parallel_iterations"].i = self._parallel
            entries[index] = f"{enter.name}:output:0"
            if self._changes[index]:
                merges[index] = self._op("merge", index, "Merge", [entries[index]])
                merges[index].attr["N"].i = 2
                entries[index] = f"{merges[index].name}:output:0"
        for index, begin in enumerate(self._initial):
            if not self._changes[index]:
                self._lowering.replace_result(begin, self._result(index))
        return merges, entries

    def _add_condition(self, entries: Mapping[int, str]) -> str:
        """Adds the condition; returns its result."""
        first = producer_name(entries[self._changing[0]])
        returns = self._condition.graph.returns
        (goes_on,), ends = self._add("cond", self._condition, entries, returns, lambda: f"^{first}")
        node = self._lowering.add(f"{self._loop.name}/goes_on", "LoopCond", [goes_on, *ends], self._loop)
        return f"{node.name}:output:0"

    def _switch(self, entries: Mapping[int, str], test: str) -> dict[int, str]:
        """Adds Switch and Exit ops; returns the tensors in the body."""
        inside, awaited, remaining = dict(entries), self._end_signals(), {}
        for index in self._changing:
            switch = self._op("switch", index, "Switch", [entries[index], test])
            inside[index] = f"{switch.name}:output_true:0"
            if index in awaited or self._result(index) in self._used:
                leave = self._op("exit", index, "Exit", [f"{switch.name}:output_false:0"])
                self._lowering.replace_result(f"{leave.name}:output:0", self._result(index))
                remaining[index] = leave.name
        if awaited:
            (end,) = self._joined_controls([f"^{remaining[index]}" for index in awaited], _MAX_DIRECT_EDGES, "done")
            self._lowering.record_end(end[1:], self._loop.name)
        return inside

    def _end_signals(self) -> list[int]:
        """Returns the loop variables after whose exits the loop has ended: one if iterations are sequential."""
        if f"^{self._loop.name}" not in self._used:
            return []
        return self._changing[:1] if self._parallel == 1 else self._changing

    def _add_body(self, merges: Mapping[int, node_def_pb2.NodeDef], inside: Mapping[int, str]) -> None:
        """Adds the body and feeds its results back to the merges."""

        @functools.cache
        def runs() -> str:
            return f"^{self._op('runs', self._changing[0], 'Identity', [inside[self._changing[0]]]).name}"

        returns = [self._returns[index] for index in self._changing]
        results, ends = self._add("body", self._body, inside, returns, runs)
        ends = self._joined_controls(ends, len(results), "end")
        unchanging = set(inside.values()).difference(inside[index] for index in self._changing)
        for index, result in zip(self._changing, results):
            # A loop invariant exists in the last iteration too, and no iteration may follow that one.
            controls = [runs()] if result in unchanging and not ends else ends
            node = self._op("next", index, "NextIteration", [result, *controls])
            merges[index].input.append(f"{node.name}:output:0")

    def _add(
        self,
        name: str,
        part: _LoopFunction,
        entries: Mapping[int, str],
        returns: Sequence[str],
        guard: Callable[[], str],
    ) -> tuple[list[str], list[str]]:
        """Adds the ops of the condition or the body; returns the results, and the control inputs of its ends.

        An op that depends on no switch gets a control input from `guard`.
        """
        nodes = part.needed(returns)
        names = {node.name: self._lowering.names.unique(f"{self._loop.name}/{name}/{node.name}") for node in nodes}
        arguments = {argument: entries.get(index, "") for index, argument in enumerate(part.graph.arguments)}
        invariant: dict[str, str] = {}  # results of inner loops that equal the loops' inputs
        switched = {producer_name(entries[index]) for index in self._changing}  # ops that run only after a switch

        def renamed(tensor_name: str) -> str:
            if is_argument(tensor_name):
                return arguments[tensor_name]
            new_name = with_producer(tensor_name, names[producer_name(tensor_name)])
            return invariant.get(new_name, new_name)

        protos = []
        for node in nodes:
            data = [renamed(tensor_name) for tensor_name in node.inputs]
            controls = [names[control.name] for control in node.controls]
            proto = copy_node(node.proto, [*data, *(f"^{control}" for control in controls)])
            proto.name = names[node.name]
            # TensorFlow guards the ops of a function by one of its inputs each, so a function always needs a guard.
            if node.op in vocabulary.FUNCTION_ATTRIBUTES or switched.isdisjoint([*map(producer_name, data), *controls]):
                proto.input.append(guard())
            switched.add(proto.name)
            for index in self._lowering.invariant_results(proto):
                invariant[f"{proto.name}:output:{index}"] = data[index]
            protos.append(proto)
        results = [renamed(tensor_name) for tensor_name in returns]
        ends = [f"^{names[end]}" for end in dict.fromkeys(part.ends)]
        self._lowering.add_nodes(protos, [*results, *ends])
        return results, ends

    def _joined_controls(self, controls: list[str], many: int, name: str) -> list[str]:
        """Returns few control inputs for many ops: one join op if that saves edges."""
        if len(controls) < 2 or len(controls) * many <= _MAX_DIRECT_EDGES:
            return controls
        return [f"^{self._lowering.add(f'{self._loop.name}/{name}', 'NoOp', controls, self._loop).name}"]

    def _op(self, name: str, index: int, op: str, inputs: Iterable[str]) -> node_def_pb2.NodeDef:
        node = self._lowering.add(f"{self._loop.name}/{name}_{index}", op, inputs, self._loop)
        node.attr["T"].type = self._types[index]
        return node
