"""Replaces ops by functions of other ops that compute the same: by a call, or inlined.

Before a program is planned, a call replaces the op: the plan and profiles name it. In XLA programs that are planned
already the function is inlined, because later passes look at neighbouring ops. Uses `graph_to_function_def`; checked on
TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import calls, op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import (
    control_inputs,
    copy_annotations,
    copy_node,
    data_inputs,
    is_control,
    producer_name,
    without_annotations,
)
from tf_ipu_shim.tf_private.graphs import graph_to_function_def, importer, ops
from tf_ipu_shim.tf_private.operations import array_ops, gen_functional_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2, graph_pb2, node_def_pb2

# XLA passes constants on to the functions of a conditional that has this attribute.
_PASSES_CONSTANTS = "_xla_propagate_compile_time_consts"

_serial = itertools.count()


class Original:
    """Copies the replaced op into the function that replaces it, with other inputs.

    Attributes:
        node: the replaced op.
        branches: the functions of conditionals that were made by `either`.
    """

    def __init__(self, node: node_def_pb2.NodeDef) -> None:
        self.node = node
        self.branches: list[function_pb2.FunctionDef] = []

    def __call__(self, *inputs: Any, **types: int) -> list[Any]:
        """Adds a copy with these inputs and type attributes; returns its results."""
        copy = copy_node(self.node, [f"given_{index}:0" for index in range(len(inputs))])
        copy.name = "original"
        copy.device = ""
        copy.attr.pop(vocabulary.COLOCATION_ATTRIBUTE, None)
        copy.attr.pop("_output_shapes", None)
        for attribute, kind in types.items():
            copy.attr[attribute].type = kind
        (operation,) = importer.import_graph_def(
            graph_pb2.GraphDef(node=[copy]),
            input_map={f"given_{index}:0": tensor for index, tensor in enumerate(inputs)},
            return_elements=["original"],
            name="",
        )
        return list(operation.outputs)

    def either(self, condition: Any, inputs: Sequence[Any], *builds: Callable[[Sequence[Any]], Any]) -> Any:
        """Returns the tensor of one of two functions: of the first if the condition is true."""
        then_branch, else_branch = (
            attr_value_pb2.NameAttrList(name=self._add_branch(build, inputs)) for build in builds
        )
        kinds = [kind for types in op_types.output_types(self.node).values() for kind in types]
        (result,) = gen_functional_ops.stateless_if(
            cond=condition,
            input=list(inputs),
            Tout=[dtypes.as_dtype(kind) for kind in kinds],
            then_branch=then_branch,
            else_branch=else_branch,
        )
        return result

    def _add_branch(self, build: Callable[[Sequence[Any]], Any], inputs: Sequence[Any]) -> str:
        with ops.Graph().as_default() as graph:
            arguments = [array_ops.placeholder(operand.dtype) for operand in inputs]
            results = [build(arguments)]
            branch = graph_to_function_def.graph_to_function_def(graph, graph.get_operations(), arguments, results)
        branch.signature.name = f"{self.node.op}_{build.__name__}_{next(_serial)}"
        self.branches.append(branch)
        return branch.signature.name


class Replacement(NamedTuple):
    """A function that replaces an op.

    Args:
        build: makes the op's results from an `Original` and the op's inputs; the last results may be left out.
        num_inputs: how many of the op's inputs it accepts; all when left out.
        finish: changes an op after creation, if TensorFlow's Python cannot create it so.
        has_kernel: whether in mode `kernels` the op itself runs. Its one output is `output`.
    """

    build: Callable[..., Sequence[Any]]
    num_inputs: int | None = None
    finish: Callable[[node_def_pb2.NodeDef], None] = lambda node: None
    has_kernel: bool = False


# The function that replaces an op; None where the op stays.
Rule = Callable[[Node], "Replacement | None"]


def replace_ops(functions: Functions, rules: Mapping[str, Rule]) -> None:
    """Replaces ops of a program by calls of functions, according to a rule for each op type."""
    for name in functions.reached():
        graph = functions[name]
        if graph.ops.isdisjoint(rules):
            continue
        replacements = {node: rules[node.op](node) for node in graph.nodes if node.op in rules}
        _call_functions(functions, graph, {node: made for node, made in replacements.items() if made is not None})


def _call_functions(functions: Functions, graph: FunctionGraph, replacements: Mapping[Node, Replacement]) -> None:
    renamed = {
        tensor_name: f"{node.name}:output:{index}"
        for node in replacements
        for index, tensor_name in enumerate(op_types.output_names(node.proto))
    }

    def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        return [_call(functions, node.proto, replacements[node])] if node in replacements else None

    if replacements:
        graph.rewrite(rule, renamed=renamed)


def _call(functions: Functions, node: node_def_pb2.NodeDef, replacement: Replacement) -> node_def_pb2.NodeDef:
    """Returns the call that replaces an op; it has the op's annotations, the ops of its function only their shard."""
    definition, branches = _define(without_annotations(node), replacement)
    definition.signature.name = functions.fresh_name(f"ipu_in_place_of_{node.op}")
    for inner in definition.node_def:
        if vocabulary.SHARDING_ATTRIBUTE in node.attr:
            inner.attr[vocabulary.SHARDING_ATTRIBUTE].CopyFrom(node.attr[vocabulary.SHARDING_ATTRIBUTE])
    for function in (definition, *branches):
        functions.add(FunctionGraph.parse(function))
    signature = definition.signature
    call = node_def_pb2.NodeDef(name=node.name, device=node.device)
    call.input.extend([*data_inputs(node)[: len(signature.input_arg)], *control_inputs(node)])
    copy_annotations(node, call)
    if replacement.has_kernel:
        call.attr[vocabulary.STANDS_FOR_ATTRIBUTE].s = node.SerializeToString()
    types, results = ([argument.type for argument in side] for side in (signature.input_arg, signature.output_arg))
    calls.make_call(call, types, results, signature.name)
    return call


def restore_op(node: node_def_pb2.NodeDef) -> None:
    """Restores the original op from the call that replaced it, if it has a kernel."""
    if vocabulary.STANDS_FOR_ATTRIBUTE in node.attr:
        op = node_def_pb2.NodeDef.FromString(node.attr[vocabulary.STANDS_FOR_ATTRIBUTE].s)
        node.op = op.op
        node.ClearField("attr")
        for name, value in op.attr.items():
            node.attr[name].CopyFrom(value)


def inline_replacements(
    function: function_pb2.FunctionDef, rule: Callable[[node_def_pb2.NodeDef], Replacement | None]
) -> list[function_pb2.FunctionDef]:
    """Inlines the functions that replace ops of a function, in place; returns the branch functions that they need."""
    renamed: dict[str, str] = {}
    branches: list[function_pb2.FunctionDef] = []
    nodes: list[node_def_pb2.NodeDef] = []
    for node in function.node_def:
        replacement = rule(node)
        if replacement is None:
            nodes.append(copy_node(node))
            continue
        inlined, results, added = inline(node, replacement)
        nodes += inlined
        branches += added
        renamed.update(zip(op_types.output_names(node), results))
        renamed[f"^{node.name}"] = f"^{producer_name(results[0])}"
    for node in nodes:
        node.input[:] = [renamed.get(tensor_name, tensor_name) for tensor_name in node.input]
    del function.node_def[:]
    function.node_def.extend(nodes)
    for result, tensor in list(function.ret.items()):
        function.ret[result] = renamed.get(tensor, tensor)
    return branches


def inline(
    node: node_def_pb2.NodeDef, replacement: Replacement
) -> tuple[list[node_def_pb2.NodeDef], list[str], list[function_pb2.FunctionDef]]:
    """Returns the ops of the function that replaces an op, its results, and the branch functions that it needs."""
    definition, branches = _define(node, replacement)
    prefix, controls = f"{node.name}/as_kernel", control_inputs(node)
    arguments = dict(zip((argument.name for argument in definition.signature.input_arg), data_inputs(node)))

    def outside(tensor_name: str) -> str:
        if tensor_name in arguments:
            return arguments[tensor_name]
        return f"^{prefix}/{producer_name(tensor_name)}" if is_control(tensor_name) else f"{prefix}/{tensor_name}"

    for inner in definition.node_def:
        inner.input[:] = [outside(tensor_name) for tensor_name in inner.input]
        inner.name = f"{prefix}/{inner.name}"
        inner.device = node.device
        if inner.op == "StatelessIf":
            inner.attr[_PASSES_CONSTANTS].b = True
        if not any(tensor_name.startswith(prefix) for tensor_name in inner.input):
            inner.input.extend(controls)
    results = [outside(definition.ret[result.name]) for result in definition.signature.output_arg]
    return list(definition.node_def), results, branches


def _define(
    node: node_def_pb2.NodeDef, replacement: Replacement
) -> tuple[function_pb2.FunctionDef, list[function_pb2.FunctionDef]]:
    """Returns the function that replaces an op, and its branch functions."""
    original = Original(node)
    names = [argument.name for argument in op_types.op_def(node.op).input_arg][: replacement.num_inputs]
    with ops.Graph().as_default() as graph:
        inputs = [
            array_ops.placeholder(dtypes.as_dtype(kind), name=name)
            for name, kind in zip(names, op_types.input_types(node))
        ]
        outputs = dict(zip(op_types.output_types(node), replacement.build(original, *inputs)))
        definition = graph_to_function_def.graph_to_function_def(
            graph, graph.get_operations(), inputs, list(outputs.values()), list(outputs)
        )
    for inner in definition.node_def:
        replacement.finish(inner)
    return definition, original.branches
