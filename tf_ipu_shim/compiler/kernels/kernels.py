"""Converts a program to execution mode `kernels`: TensorFlow's own kernels instead of XLA launches.

Both modes first lower a program to XLA programs: placement, phases, exchanges and the memory plan come from HLO. Here
each launch becomes a call of a function of the same ops. All of them have the IPU's TensorFlow device and the number of
their IPU, so the delegated kernels (`kernels.cc`) run them in that IPU's memory.

Each XLA program has one thread, so its accesses to a variable are in order. TensorFlow's executor runs unordered ops at
the same time, so the ops on a variable are chained here.

Called functions and loops are inlined into the emitted functions, so that only the program's ops run (`inlining`,
`loop_frames`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Container, Iterable, Mapping, Sequence

from tf_ipu_shim.compiler.ir import calls, one_dnn, op_functions, op_types, vocabulary
from tf_ipu_shim.compiler.ir.constant_folding import FoldedOps
from tf_ipu_shim.compiler.ir.custom_calls import callers_of
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph
from tf_ipu_shim.compiler.ir.functions import AS_WRITTEN
from tf_ipu_shim.compiler.ir.node_defs import TensorName, copy_function, copy_node, producer_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.compiler.kernels.bias_fusion import fuse_biases
from tf_ipu_shim.compiler.kernels.inlining import inline_calls, referenced_functions
from tf_ipu_shim.compiler.kernels.loop_frames import lower_loops
from tf_ipu_shim.compiler.kernels.one_dnn_pooling import use_one_dnn_pooling
from tf_ipu_shim.compiler.kernels.op_launches import OpLaunches
from tf_ipu_shim.compiler.kernels.out_of_bounds import guard_inputs
from tf_ipu_shim.compiler.kernels.random_launches import DEPENDS_ON_FOLDING, LAUNCHED, narrow_seeds
from tf_ipu_shim.compiler.kernels.simplify import simplify_function
from tf_ipu_shim.compiler.kernels.stochastic_rounding import set_rounding
from tf_ipu_shim.compiler.passes import variable_order
from tf_ipu_shim.compiler.passes.assertions import ASSERT, Describe, asserting_functions
from tf_ipu_shim.compiler.passes.dead_code_elimination import eliminate_dead_code
from tf_ipu_shim.machine.ids import Chip
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2, graph_pb2, node_def_pb2, xla_data_pb2

# Attributes by which TensorFlow compiles a function or replaces it by another one.
_IRRELEVANT_ATTRIBUTES = ("_Xla", "_xla", "api_implements", "api_preferred_device", "_noinline")

_serial = itertools.count()


@dataclasses.dataclass(frozen=True)
class KernelOptions:
    """How ops run in mode `kernels`.

    Args:
        describe: returns an op's description, for its errors.
        describes_all: whether each op gets its description; else only assertions do.
        refuses: whether ops refuse inputs out of range; else they compute what XLA does.
        on_one_thread: whether to use TensorFlow's single-threaded executor if it can run the program.
        launched: types of ops that XLA runs.
    """

    describe: Describe
    describes_all: bool = True
    refuses: bool = True
    on_one_thread: bool = False
    launched: frozenset[str] = frozenset()


def without_grouped_kernel(convolutions: Iterable[tuple[str, int]]) -> frozenset[str]:
    """Returns the ops of grouped convolutions, of these with XLA's element types, that TensorFlow has no kernel for."""
    return frozenset(
        op
        for op, kind in convolutions
        if op.startswith("Conv3D")
        or (op.startswith("Conv2DBackprop") and (kind != xla_data_pb2.F32 or not one_dnn.enabled()))
    )


def to_kernels(
    plugin: Library,
    call: Call,
    program: LoweredProgram,
    library: Mapping[str, function_pb2.FunctionDef],
    options: KernelOptions,
) -> LoweredProgram:
    """Returns the program with its XLA launches replaced by calls of functions that run op by op.

    Its XLA programs are those of the ops without a kernel, one op each.
    """
    programs = set(program.programs)
    functions = {function.signature.name: function for function in program.functions}
    copies = _FunctionCopies(plugin, call, {**library, **functions}, program, options)
    # TensorFlow has had the functions that XLA programs and host ops call since the lowering: they stay.
    called = [functions[name] for name in program.traced if name in functions]
    unchanged = programs.union(program.traced)
    emitted = [copies.with_calls(function) for name, function in functions.items() if name not in unchanged]
    node = copy_node(program.node)
    is_launch = node.op == vocabulary.LAUNCH
    if is_launch:
        copies.replace_by_call(node)
    run = _inline_all([*emitted, *copies.made.values(), *copies.launches.functions], node)
    if is_launch and options.on_one_thread and _can_run_on_one_thread(run):
        node.attr["executor_type"].s = b"SINGLE_THREADED_EXECUTOR"  # checked on 2.15.1 and 2.21.0
    _disable_rewriting([node, *(inside for function in run for inside in function.node_def)])
    return dataclasses.replace(program, node=node, functions=[*called, *run], clusters=copies.launches.clusters)


def _inline_all(
    functions: Iterable[function_pb2.FunctionDef], node: node_def_pb2.NodeDef
) -> list[function_pb2.FunctionDef]:
    """Inlines calls and loops; returns the functions that an op still runs."""
    flat = {function.signature.name: simplify_function(function) for function in inline_calls(functions, node)}
    framed = {name: lower_loops(function, flat) for name, function in flat.items()}
    needed = reachable(
        referenced_functions([node], framed), lambda name: referenced_functions(framed[name].node_def, framed)
    )
    return [framed[name] for name in needed]


def _can_run_on_one_thread(run: Sequence[function_pb2.FunctionDef]) -> bool:
    """Returns whether a run is one function without control flow, as TensorFlow's single-threaded executor requires."""
    control_flow = vocabulary.FRAMES | vocabulary.FUNCTION_ATTRIBUTES.keys()
    return len(run) == 1 and not any(node.op in control_flow for node in run[0].node_def)


def _disable_rewriting(nodes: Iterable[node_def_pb2.NodeDef]) -> None:
    """Disables TensorFlow's graph rewriting, which drops the ops' IPU attribute.

    Calls are put into the graph around them. The error of an op in a call would cancel the ops around the call, and
    then look like a consequence of that.
    """
    for node in nodes:
        if node.op in vocabulary.CALLS or node.op == vocabulary.REPLICA_CALL:
            node.attr["config_proto"].s = AS_WRITTEN
        if node.op in vocabulary.CALLS:
            node.attr["_lower_as_multi_device_function"].b = True  # put it into the graph around it


class _FunctionCopies:
    """Copies functions for op-by-op execution, one for each function and IPU."""

    def __init__(
        self,
        plugin: Library,
        call: Call,
        library: Mapping[str, function_pb2.FunctionDef],
        program: LoweredProgram,
        options: KernelOptions,
    ) -> None:
        self._plugin, self._library = plugin, library
        self._traced = {**program.traced, **{cluster.function: cluster.scope for cluster in program.clusters}}
        self._device = program.node.device
        self._is_replicated = any(
            node.op == vocabulary.REPLICA_CALL for function in program.functions for node in function.node_def
        )
        self._options = options
        self._asserting = asserting_functions(library)
        drawing = (
            name
            for name, definition in library.items()
            if any(node.op in DEPENDS_ON_FOLDING for node in definition.node_def)
        )
        self._random = callers_of(drawing, library)
        self._names: dict[tuple[str, int, frozenset[int]], str] = {}
        self.launches = OpLaunches(call, self._fresh)
        self.made: dict[str, function_pb2.FunctionDef] = {}

    def with_calls(self, function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
        """Returns a copy of an emitted function with its launches replaced by calls."""
        launches = {node.name for node in function.node_def if node.op == vocabulary.LAUNCH}
        copy = copy_function(function)
        for node in copy.node_def:
            if node.name in launches:
                self.replace_by_call(node)
            for index, tensor_name in enumerate(node.input):
                node.input[index] = _renamed(tensor_name, launches)
        for result, tensor in list(copy.ret.items()):
            copy.ret[result] = _renamed(tensor, launches)
        return copy

    def replace_by_call(self, node: node_def_pb2.NodeDef) -> None:
        """Turns a launch into a call; its results are renamed."""
        attributes = node.attr
        types = [*attributes["Tconstants"].list.type, *attributes["Targs"].list.type]
        types.extend([op_types.RESOURCE] * attributes["Nresources"].i)
        results = list(attributes["Tresults"].list.type)
        name = self.copy_of(attributes["function"].func.name, attributes[vocabulary.CHIP_ATTRIBUTE].i)
        for attribute in ("Tconstants", "Targs", "Nresources", "Tresults", "function"):
            attributes.pop(attribute)
        for attribute in (vocabulary.IN_PLACE_ATTRIBUTE, vocabulary.SHAPES_ATTRIBUTE):
            attributes.pop(attribute, None)
        calls.make_call(node, types, results, name)

    def copy_of(self, name: str, chip: Chip, constants: frozenset[int] = frozenset()) -> str:
        """Returns the name of a function's copy for an IPU and for constant arguments, made on demand."""
        key = (name, chip, constants)
        if key not in self._names:
            # Named before it is made: a function may call itself.
            self._names[key] = self._fresh(f"{name}_on_ipu{chip}")
            self.made[self._names[key]] = self._copy(self._library[name], self._names[key], chip, constants)
        return self._names[key]

    def _fresh(self, name: str) -> str:
        """Returns an unused function name; TensorFlow keeps the functions of earlier lowerings too."""
        while True:
            fresh_name = f"{name}_{next(_serial)}"
            if fresh_name not in self._library:
                return fresh_name

    def _copy(
        self, function: function_pb2.FunctionDef, name: str, chip: Chip, constants: frozenset[int]
    ) -> function_pb2.FunctionDef:
        function = eliminate_dead_code(function)
        folded = FoldedOps(function, constants) if function.signature.name in self._random else None
        scope = self._traced.get(function.signature.name, function.signature.name)
        copy = self._with_kernel_ops(function)
        if folded is not None:
            narrow_seeds(copy, folded.names)
        _return_after_accesses(copy)
        copy.signature.name = name
        parts = {**fuse_biases(copy), **use_one_dnn_pooling(copy)}
        for node in copy.node_def:
            set_rounding(node, self._is_replicated)
            for attribute in [key for key in node.attr if _is_private(key)]:
                del node.attr[attribute]
            node.device = self._device
            node.attr[vocabulary.CHIP_ATTRIBUTE].i = chip
            if self._options.describes_all or node.op == ASSERT:
                description = self._options.describe(scope, parts.get(node.name, node))
                node.attr[vocabulary.DESCRIPTION_ATTRIBUTE].s = description.encode()
            self._redirect(node, chip, folded)
        launched = _without_kernel(self._plugin, copy.node_def)
        launched.update(node.name for node in copy.node_def if node.op in self._options.launched)
        if folded is not None:
            drawing = {node.name for node in copy.node_def if node.op in LAUNCHED}
            launched.update(drawing - folded.names)
        self.launches.replace(copy, launched, scope)
        return copy

    def _with_kernel_ops(self, function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
        """Returns a copy whose ops all have kernels for the inputs that XLA accepts."""
        copy = copy_function(function)
        for attribute in [key for key in copy.attr if key.startswith(_IRRELEVANT_ATTRIBUTES)]:
            del copy.attr[attribute]
        orders = _variable_orders(function, self._asserting)
        for node in copy.node_def:
            present = set(node.input)
            node.input.extend(tensor_name for tensor_name in orders.get(node.name, ()) if tensor_name not in present)
        if not self._options.refuses:
            guard_inputs(copy)
        for node in copy.node_def:
            op_functions.restore_op(node)
        return copy

    def _redirect(self, node: node_def_pb2.NodeDef, chip: Chip, folded: FoldedOps | None) -> None:
        for _, function in op_types.function_values(node):
            constant_arguments: frozenset[int] = frozenset()
            if folded is not None and function.name in self._random:
                constant_arguments = folded.constant_arguments(node.name, self._library)
            function.name = self.copy_of(function.name, chip, constant_arguments)
        if node.op in vocabulary.LOOPS | vocabulary.BRANCHES:
            # As ops of the graph around them, loops and branches need no function call in each iteration.
            node.attr["_lower_using_switch_merge"].CopyFrom(attr_value_pb2.AttrValue(b=True))
        if node.op in vocabulary.LOOPS:
            node.attr["parallel_iterations"].i = 1  # as on an IPU: what an iteration does is done before the next one


def _without_kernel(plugin: Library, nodes: Iterable[node_def_pb2.NodeDef]) -> set[str]:
    """Returns the names of ops that TensorFlow's CPU device has no kernel for."""
    graph = graph_pb2.GraphDef(node=[node for node in nodes if node.op not in vocabulary.FUNCTION_ATTRIBUTES])
    return set(plugin.without_kernel(graph.SerializeToString()))


def _return_after_accesses(function: function_pb2.FunctionDef) -> None:
    """Makes callers that wait for a function also wait for its variable reads: a write may follow."""
    variables = {argument.name for argument in function.signature.input_arg if argument.type == op_types.RESOURCE}
    returned = set(function.control_ret.values())
    for node in function.node_def:
        if node.name not in returned and not variables.isdisjoint(node.input):
            function.signature.control_output.append(node.name)
            function.control_ret[node.name] = node.name


def _renamed(tensor_name: str, launches: Iterable[str]) -> str:
    tensor = TensorName.parse(tensor_name)
    return str(tensor._replace(output="output")) if tensor.output and tensor.producer in launches else tensor_name


def _is_private(attribute: str) -> bool:
    return attribute in vocabulary.PRIVATE_ATTRIBUTES or attribute.startswith(_IRRELEVANT_ATTRIBUTES)


def _variable_orders(function: function_pb2.FunctionDef, asserting: Container[str]) -> dict[str, list[str]]:
    """Maps nodes to control inputs that order accesses to each variable, with asserts first."""
    if not any(argument.type == op_types.RESOURCE for argument in function.signature.input_arg):
        return {}
    graph = FunctionGraph.parse(function)
    orders = variable_order.access_orders(graph)
    asserts = [
        node.name
        for node in graph.nodes
        if node.op == ASSERT or any(name in asserting for name in op_types.called_functions(node.proto))
    ]
    if asserts:
        _run_asserts_first(asserts, graph, orders)
    return orders


def _run_asserts_first(asserts: Sequence[str], graph: FunctionGraph, orders: dict[str, list[str]]) -> None:
    """Orders asserts before writes that they do not need, so that a failed assert leaves variables unchanged."""
    position = _topological_positions(asserts, graph, orders)
    for node in graph.nodes:
        takes_variable = any(graph.arguments.get(tensor_name) == op_types.RESOURCE for tensor_name in node.inputs)
        if takes_variable and node.op != vocabulary.READ_VARIABLE:
            before = [f"^{name}" for name in asserts if position[name] < position[node.name]]
            orders.setdefault(node.name, []).extend(before)


def _topological_positions(
    first: Sequence[str], graph: FunctionGraph, orders: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """Returns a topological order with some nodes, and their inputs, as early as possible."""
    needs = {
        node.name: [predecessor.name for predecessor in [*node.producers, *node.controls] if predecessor]
        for node in graph.nodes
    }
    for name, controls in orders.items():
        needs[name].extend(map(producer_name, controls))
    position: dict[str, int] = {}
    pending = [*reversed(needs), *reversed(first)]
    while pending:
        missing = [name for name in needs[pending[-1]] if name not in position]
        if missing:
            pending.extend(missing)
        else:
            position.setdefault(pending.pop(), len(position))
    return position
