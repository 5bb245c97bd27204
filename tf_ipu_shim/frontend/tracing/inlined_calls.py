"""Inlines the `tf.function`s that a session's compiled function calls, as stock XLA does before it orders ops.

The call stays in its graph, which cannot lose an op, and is left out of the program's functions.
Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from tf_ipu_shim.compiler.ir import traced_functions, vocabulary
from tf_ipu_shim.frontend.tracing import needed_ops
from tf_ipu_shim.tf_private import functions as tf_functions
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import func_graph, handle_data_util, ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2

# Attributes of the call that its ops have too: where they run, and whose they are.
_INHERITED = (
    vocabulary.SHARDING_ATTRIBUTE,
    vocabulary.FRONTEND_ATTRIBUTE,
    vocabulary.STAGE_ATTRIBUTE,
    vocabulary.KERAS_ATTRIBUTE,
)
_KEPT = (vocabulary.STANDS_FOR_ATTRIBUTE, vocabulary.SERVED_ATTRIBUTE, vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE)


def inline_calls(graph: func_graph.FuncGraph) -> None:
    """Adds the ops of called functions to a graph, and redirects the users of the calls to their results."""
    with graph.as_default(), ops.control_dependencies(None):
        waiting = [op for op in graph.get_operations() if needed_ops.is_needed(op)]
        needed: list[ops.Operation] = []
        for op in waiting:
            body = _body(op)
            if body is not None:
                call = _InlinedCall(op, body)
                waiting += call.made
                needed += [op, *call.effects]
    if needed_ops.is_pruned(graph):
        for op in needed:
            tf_graphs.set_attr(op, vocabulary.ASKED_ATTRIBUTE, attr_value_pb2.AttrValue(b=True))
        needed_ops.note_needed(graph, needed)


def live_ops(graph: func_graph.FuncGraph) -> Iterator[ops.Operation]:
    """Yields the needed ops of a graph in the script's order, with inlined functions' ops in place of their calls."""
    inlined = _kept_of(graph).instead

    def expanded(op: ops.Operation) -> Iterator[ops.Operation]:
        if op not in inlined:
            yield op
        for one in inlined.get(op, ()):
            yield from expanded(one)

    for op in graph.get_operations():
        if not is_inlined(op) and needed_ops.is_needed(op):
            yield from expanded(op)


def is_inlined(op: ops.Operation) -> bool:
    """Returns whether an op is of an inlined function."""
    return op in _kept_of(op.graph).copies


def waits(graph: func_graph.FuncGraph) -> dict[Hashable, list[Hashable]]:
    """Maps the ops of a graph, and markers for the beginnings of calls, to their dependencies.

    A call begins when all of its inputs are computed. Ops that use its results or wait for it follow all of its ops.
    TensorFlow relies on it: it adds no control input to an op that already uses a value of the op to wait for.
    """
    kept = _kept_of(graph)
    call_of = {op: call for call, found in kept.instead.items() for op in found}
    found: dict[Hashable, list[Hashable]] = {}
    for op in graph.get_operations():
        sources: list[Hashable] = [*(tensor.op for tensor in op.inputs), *op.control_inputs, *kept.after.get(op, ())]
        if op in call_of:
            sources.append(_Beginning(call_of[op]))
        if op in kept.instead:
            found[_Beginning(op)] = list(dict.fromkeys(sources))
            sources = [_Beginning(op), *kept.instead[op]]
        found[op] = list(dict.fromkeys(sources))
    return found


def without_inlined_calls(functions: Iterable[function_pb2.FunctionDef]) -> None:
    """Removes calls that are inlined from functions."""
    for function in functions:
        gone = {node.name for node in function.node_def if vocabulary.INLINED_ATTRIBUTE in node.attr}
        if gone:
            kept = [node for node in function.node_def if node.name not in gone]
            del function.node_def[:]
            function.node_def.extend(kept)


def stock_sources(op: ops.Operation) -> list[ops.Operation]:
    """Returns the input ops of one op in stock's graph, in which handles also wait for the call."""
    instead = _kept_of(op.graph).handles.get(op, {})
    needed = [tensor for index, tensor in enumerate(op.inputs) if needed_ops.needs_input(op, index)]
    return [instead.get(id(tensor), tensor.op) for tensor in needed]


@dataclasses.dataclass(frozen=True)
class _Beginning:
    """The beginning of an inlined call; the call itself represents its end."""

    call: ops.Operation


class _Kept:
    """The inlined calls of a graph: the ops that replace each, all of these, followers, handles, a count of names."""

    def __init__(self) -> None:
        self.instead: dict[ops.Operation, list[ops.Operation]] = {}
        self.copies: set[ops.Operation] = set()
        self.after: dict[ops.Operation, list[ops.Operation]] = {}
        self.handles: dict[ops.Operation, dict[int, ops.Operation]] = {}
        self.names = itertools.count()


def _kept_of(graph: func_graph.FuncGraph) -> _Kept:
    if not hasattr(graph, "_ipu_copies"):
        graph._ipu_copies = _Kept()
    return graph._ipu_copies


def _body(op: ops.Operation) -> func_graph.FuncGraph | None:
    """Returns the graph that replaces a call."""
    if op.type not in vocabulary.CALLS or op in _kept_of(op.graph).instead:
        return None
    if any(name in op.node_def.attr for name in _KEPT):
        return None
    function = tf_graphs.functions_by_name(op.graph).get(op.node_def.attr["f"].func.name)
    body: Any = None if function is None else tf_functions.source_graph(function)
    if body is None or hasattr(body, "_ipu_in_stock_order") or function.cached_definition.attr["_noinline"].b:
        return None
    return body


def _inputs_first(body: func_graph.FuncGraph) -> list[ops.Operation]:
    """Returns the ops of a function in the script's order, but inputs that gradients add later before their users."""
    done: dict[ops.Operation, None] = {}
    waiting = body.get_operations()[::-1]
    while waiting:
        op = waiting[-1]
        missing = [tensor.op for tensor in op.inputs if tensor.op not in done]
        if missing:
            waiting += missing[::-1]
        else:
            done[waiting.pop()] = None
    return list(done)


class _InlinedCall:
    """The copy of a function in place of its call.

    Attributes:
        made: ops of the copy.
        effects: the ones of them that run even if no result needs them.
    """

    made: list[ops.Operation]
    effects: list[ops.Operation]

    def __init__(self, call: ops.Operation, body: func_graph.FuncGraph) -> None:
        self._call, self._graph = call, call.graph
        self.made = []
        self._tensors: dict[int, Any] = {}
        self._copies: dict[ops.Operation, ops.Operation] = {}
        self._handles: dict[int, ops.Operation] = {}
        self._kept = _kept_of(self._graph)
        self._kept.instead[call] = self.made
        tf_graphs.set_attr(call, vocabulary.INLINED_ATTRIBUTE, attr_value_pb2.AttrValue(b=True))
        entry = self._join("input_control_node", call.control_inputs) if call.control_inputs else None
        self._take_arguments(body, entry)
        self._copy_ops(body, entry)
        self.effects = [self._copies[op] for op in body.control_outputs]
        results = [self._tensors[id(tensor)] for tensor in body.outputs]
        self._replace_results(dict(zip(map(id, call.outputs), results)))
        self._replace_waits(self.effects or ([entry] if entry else []))

    def _take_arguments(self, body: func_graph.FuncGraph, entry: ops.Operation | None) -> None:
        """Replaces the function's arguments by the call's values."""
        for argument, value, source in zip(body.inputs, self._call.inputs, stock_sources(self._call)):
            is_handle = value.dtype.name == "resource"
            held = self._held(value, entry)
            if is_handle and (held is not value or source is not value.op):
                self._handles[id(value)] = source if held is value else held.op
            self._tensors[id(argument)] = value if is_handle else held
            self._copies[argument.op] = self._tensors[id(argument)].op

    def _copy_ops(self, body: func_graph.FuncGraph, entry: ops.Operation | None) -> None:
        """Adds the function's ops except its arguments."""
        copied = [op for op in _inputs_first(body) if op not in self._copies]
        for op in copied:
            self._copy(op)
        for op in copied:
            self._wait(op, entry)
            if self._handles:
                self._kept.handles[self._copies[op]] = self._handles
        for _ in body.outputs:
            next(self._kept.names)

    def _copy(self, op: ops.Operation) -> None:
        attributes = {
            name: value for name, value in op.node_def.attr.items() if name != vocabulary.COLOCATION_ATTRIBUTE
        }
        outer = self._call.node_def.attr
        attributes.update({name: outer[name] for name in _INHERITED if name in outer and name not in attributes})
        inputs = [self._tensors[id(tensor)] for tensor in op.inputs]
        copy = self._add(op.type, inputs, f"{self._call.name}/{op.name}", attributes, op)
        self._copies[op] = copy
        traced_functions.note_origin(copy, op)

    def _wait(self, op: ops.Operation, entry: ops.Operation | None) -> None:
        """Adds a copy's dependencies as its original has them; without any, it waits for the call's dependencies."""
        controls = [self._copies[control] for control in op.control_inputs]
        if entry is not None and not controls and (not op.inputs or op.type in vocabulary.CALLS):
            controls = [entry]
        tf_graphs.add_control_inputs(self._copies[op], controls)

    def _add(
        self,
        kind: str,
        inputs: list[Any],
        name: str,
        attributes: dict[str, Any] | None = None,
        original: ops.Operation | None = None,
        controls: Iterable[ops.Operation] = (),
    ) -> ops.Operation:
        results = inputs if original is None else original.outputs
        device = (original.device if original is not None else "") or self._call.device
        with ops.device(device):
            # A name that ends with a slash is taken as it is.
            dtypes = [tensor.dtype for tensor in results]
            op = tf_graphs.create_op(self._graph, kind, inputs, dtypes, name=f"{name}/", attrs=attributes)
        tf_graphs.add_control_inputs(op, list(controls))
        for source, tensor in zip(results, op.outputs):
            tensor.set_shape(source.shape)
            handle_data_util.copy_handle_data(source, tensor)
            self._tensors[id(source)] = tensor
        self.made.append(op)
        self._kept.copies.add(op)
        return op

    def _join(self, name: str, controls: Iterable[ops.Operation]) -> ops.Operation:
        name = f"Func/{self._call.name}/{name}/_{next(self._kept.names)}"
        return self._add("NoOp", [], name, controls=controls)

    def _held(self, value: Any, entry: ops.Operation | None) -> Any:
        """Returns a value that exists as soon as the call begins."""
        attributes = {"T": attr_value_pb2.AttrValue(type=value.dtype.as_datatype_enum)}
        name = f"Func/{self._call.name}/input/_{next(self._kept.names)}"
        if entry is None:
            return value  # XLA's graph optimizer removes the op
        return self._add("Identity", [value], name, attributes, controls=[entry]).outputs[0]

    def _replace_results(self, results: dict[int, Any]) -> None:
        for result in self._call.outputs:
            for user in result.consumers():
                self._follow(user)
                for index, tensor in enumerate(user.inputs):
                    if tensor is result:
                        tf_graphs.update_input(user, index, results[id(result)])
        self._graph.outputs = [results.get(id(tensor), tensor) for tensor in self._graph.outputs]

    def _replace_waits(self, effects: list[ops.Operation]) -> None:
        """Makes ops that wait for the call wait for the effects of the function."""
        waiting = list(tf_graphs.control_outputs(self._call))
        joined = [self._join("output_control_node", effects)] if waiting and effects else []
        for user in waiting:
            self._follow(user)
            tf_graphs.replace_control_input(user, self._call, joined)
        found = self._graph.control_outputs
        if self._call in found:
            self._graph.control_outputs = [op for op in found if op is not self._call] + effects

    def _follow(self, user: ops.Operation) -> None:
        """Records that an op follows the call, from which it no longer reads and for which it no longer waits."""
        self._kept.after.setdefault(user, []).append(self._call)
