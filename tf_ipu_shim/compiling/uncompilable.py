"""Refuses what XLA cannot compile before it runs, with the script's line and what to do, in each execution mode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tensorflow.python.framework import errors_impl

from tf_ipu_shim.lowering import vocabulary
from tf_ipu_shim.lowering.diagnostics import Diagnostics, shown_name
from tf_ipu_shim.lowering.program import Cluster, LoweredProgram

_NAMES = re.compile(r"node `([^`]+)`|\{\{node ([^}]+)\}\}|\[\[([^\]{]+)\]\]")
# A variable that has no value before the program runs.
_MAY_COMPILE_LATER = re.compile(r"uninitiali[sz]ed|variable .* (not|no) ", re.IGNORECASE)
_CONSTANT = "must be a compile-time constant"
_LIST = re.compile(r"dynamic slice dimension|tensor list|TensorList|list element|num_elements", re.IGNORECASE)
_CONSTANT_ADVICE = (
    "An IPU has static shapes: compute sizes, axes and the places of slices from Python numbers and static shapes, not "
    "from values of the program. To write to a place that the program computes use tf.tensor_scatter_nd_update, or a "
    "mask and tf.where."
)
_LIST_ADVICE = "Give the tf.TensorArray the number of its elements, size=n, instead of letting it grow."
_ADVICE = "Leave the op out of the compiled function, or run it on the host: ipu.scopes.outside_compilation_scope()."


def refuse(diagnostics: Diagnostics, program: LoweredProgram, without_form: Mapping[str, str]) -> None:
    """Refuses a program of which a part cannot be compiled, whatever values it runs with.

    Args:
        diagnostics: finds the ops' source lines.
        program: as XLA launches.
        without_form: what XLA says of the parts that it could not convert, by function.

    Raises:
        InvalidArgumentError: there is such a part, or a shape follows from random numbers.
    """
    _refuse_random_shapes(diagnostics, program)
    for cluster in [*program.clusters, *program.planned_clusters]:
        text = without_form.get(cluster.function)
        if text is None or cluster.constants or _MAY_COMPILE_LATER.search(text) or _has_shapes(program, cluster):
            continue
        said = text.strip().split("\n")[0].rstrip(".")
        op = _op_of(diagnostics, program, cluster, text)
        advice = _CONSTANT_ADVICE if _CONSTANT in said else _LIST_ADVICE if _LIST.search(text) else _ADVICE
        raise errors_impl.InvalidArgumentError(
            None, None, f"Cannot compile {shown_name(cluster.scope)}: {said}.{op} {advice}"
        )


def _has_shapes(program: LoweredProgram, cluster: Cluster) -> bool:
    """Whether variables decide shapes of a part."""
    functions = [*program.functions, *program.planned_functions]
    nodes = [program.node, *(node for function in functions for node in function.node_def)]
    return any(
        vocabulary.SHAPES_ATTRIBUTE in node.attr and node.attr["function"].func.name == cluster.function
        for node in nodes
        if node.op == vocabulary.LAUNCH
    )


def _op_of(diagnostics: Diagnostics, program: LoweredProgram, cluster: Cluster, text: str) -> str:
    """The op that a message is about, and its line."""
    clusters = [*program.clusters, *program.planned_clusters]
    scopes = {**program.traced, **{one.function: one.scope for one in clusters}}
    for name in (next(filter(None, found.groups())) for found in _NAMES.finditer(text)):
        for scope, node in _nodes_called(program, scopes, name):
            if diagnostics.user_line(scope, node.name):
                return f" Op {diagnostics.describe(scope, node)}."
    functions = {one.signature.name: one for one in [*program.functions, *program.planned_functions]}
    for node in functions[cluster.function].node_def if cluster.function in functions else ():
        line = diagnostics.user_line(cluster.scope, node.name)
        if line:
            return f" It is in what {line} makes."
    return ""


def _nodes_called(program: LoweredProgram, scopes: Mapping[str, str], name: str) -> Iterator[tuple[str, Any]]:
    for function in [*program.functions, *program.planned_functions]:
        scope = scopes.get(function.signature.name, function.signature.name)
        for node in function.node_def:
            if node.op != vocabulary.LAUNCH and (node.name == name or name.endswith(f"/{node.name}")):
                yield scope, node


def _refuse_random_shapes(diagnostics: Diagnostics, program: LoweredProgram) -> None:
    """Refuses a part that XLA would have to know the random numbers of when it compiles it."""
    seeds = {
        node.name for function in program.functions for node in function.node_def if node.op == vocabulary.RANDOM_SEED
    }
    functions = {function.signature.name: function for function in program.functions}
    for cluster in program.clusters:
        constants = cluster.inputs[: cluster.constants]
        if seeds.isdisjoint(tensor.partition(":")[0] for tensor in constants):
            continue
        random = next(filter(_is_random, functions[cluster.function].node_def), None)
        op = f":\n  {diagnostics.describe(cluster.scope, random)}\n" if random is not None else ". "
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            "The dimensions of all tensors must be fully defined at compile time, and some depend on random numbers"
            f"{op}{_CONSTANT_ADVICE}",
        )


def _is_random(node: Any) -> bool:
    return node.op.startswith(("StatelessRandom", "StatelessTruncated", "StatelessMultinomial"))
