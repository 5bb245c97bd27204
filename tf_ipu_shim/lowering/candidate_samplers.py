"""Candidate samplers on an IPU: XLA has no kernel for TensorFlow's, so that they become functions of ops that it has.

A sampler draws classes, for losses over a part of them. With replacement that is one random op. Without it TensorFlow
tries until it has enough classes, and tells of the tries in the expected counts. Here each class has a time at which it
first comes up, exponentially distributed with its probability: the classes of the smallest times, in order, are those
that trying would have given. In place of the number of tries stands what it is to be expected to be after these times.

Uses `graph_to_function_def`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.core.framework import function_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import dtypes, errors_impl, graph_to_function_def, ops
from tensorflow.python.ops import array_ops, math_ops, nn_ops, random_ops

from tf_ipu_shim.lowering import vocabulary
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node
from tf_ipu_shim.lowering.functions import Functions

OPS = frozenset({"LogUniformCandidateSampler", "UniformCandidateSampler"})
_OUTPUTS = ("sampled_candidates", "true_expected_count", "sampled_expected_count")
_TYPES = (types_pb2.DT_INT64, types_pb2.DT_FLOAT, types_pb2.DT_FLOAT)
_TINY = 1e-30  # no draw is zero, whose logarithm is infinite


def replace(functions: Functions) -> None:
    """Replaces the candidate samplers of a program.

    Args:
        functions: the program; changed where there are any.

    Raises:
        InvalidArgumentError: more different classes are to be drawn than there are.
    """
    for name in functions.reached():
        if not functions[name].ops.isdisjoint(OPS):
            _replace_in(functions, functions[name])


def _replace_in(functions: Functions, graph: FunctionGraph) -> None:
    renamed = {
        f"{node.name}:{output}:0": f"{node.name}:output:{index}"
        for node in graph.nodes
        if node.op in OPS
        for index, output in enumerate(_OUTPUTS)
    }
    if not renamed:
        return

    def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if node.op not in OPS and renamed.keys().isdisjoint(node.inputs):
            return None
        made = node_def_pb2.NodeDef()
        made.CopyFrom(node.proto)
        made.input[:] = [renamed.get(text, text) for text in node.proto.input]
        if node.op in OPS:
            made = _call(made, _sampler(functions, node))
        return [made]

    graph.rewrite(rule)
    graph.results = [result._replace(tensor=renamed.get(result.tensor, result.tensor)) for result in graph.results]


def _call(node: node_def_pb2.NodeDef, function: str) -> node_def_pb2.NodeDef:
    """The call that stands where a sampler stood."""
    made = node_def_pb2.NodeDef(name=node.name, op="StatefulPartitionedCall", device=node.device, input=node.input)
    for name, value in node.attr.items():
        if name.startswith("_"):
            made.attr[name].CopyFrom(value)
    made.attr["Tin"].list.type.append(types_pb2.DT_INT64)
    made.attr["Tout"].list.type.extend(_TYPES)
    made.attr["f"].func.name = function
    return made


def _sampler(functions: Functions, node: Node) -> str:
    """Adds the function that stands for a sampler; returns its name."""
    attributes = node.proto.attr
    sampled, classes = attributes["num_sampled"].i, attributes["range_max"].i
    if attributes["unique"].b and sampled > classes:
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            f"{node.op} {node.name} is to draw {sampled} different classes, and there are {classes}: the sampler's "
            "range is too small. Draw fewer, or with replacement (unique=False).",
        )
    seeds = attributes["seed"].i, attributes["seed2"].i
    name = functions.fresh("ipu_candidate_sampler")
    drawing = _without_replacement if attributes["unique"].b else _with_replacement
    probabilities = _log_uniform if node.op == "LogUniformCandidateSampler" else _uniform
    with ops.Graph().as_default() as graph:
        true_classes = array_ops.placeholder(dtypes.int64, name="true_classes")
        results = drawing(true_classes, sampled, classes, probabilities)
        definition: function_pb2.FunctionDef = graph_to_function_def.graph_to_function_def(
            graph, graph.get_operations(), [true_classes], results, list(_OUTPUTS)
        )
    definition.signature.name = name
    for inner in definition.node_def:
        if "seed2" in inner.attr:
            inner.attr["seed"].i, inner.attr["seed2"].i = seeds
            inner.attr[vocabulary.RESTARTING_ATTRIBUTE].b = any(seeds)
    functions.add(FunctionGraph.parse(definition))
    return name


_Probabilities = Callable[[Any, int], Any]


def _uniform(numbers: Any, classes: int) -> Any:
    return array_ops.ones_like(numbers) / classes


def _log_uniform(numbers: Any, classes: int) -> Any:
    """P(class) = (log(class + 2) - log(class + 1)) / log(classes + 1)."""
    return math_ops.log1p(1.0 / (numbers + 1.0)) / math.log1p(classes)


def _with_replacement(true_classes: Any, sampled: int, classes: int, probabilities: _Probabilities) -> list[Any]:
    if probabilities is _uniform:
        drawn = random_ops.random_uniform([sampled], 0, classes, dtypes.int64)
    else:
        # A value below n has the probability log(n + 1) / log(classes + 1).
        values = math_ops.expm1(random_ops.random_uniform([sampled]) * math.log1p(classes))
        drawn = math_ops.minimum(math_ops.cast(values, dtypes.int64), classes - 1)

    def counts(numbers: Any) -> Any:
        return probabilities(math_ops.cast(numbers, dtypes.float32), classes) * sampled

    return [drawn, counts(true_classes), counts(drawn)]


def _without_replacement(true_classes: Any, sampled: int, classes: int, probabilities: _Probabilities) -> list[Any]:
    every = probabilities(math_ops.cast(math_ops.range(classes), dtypes.float32), classes)
    times = -math_ops.log(random_ops.random_uniform([classes], _TINY)) / every
    negative, drawn = nn_ops.top_k(-times, sampled)
    times, drawn = -negative, math_ops.cast(drawn, dtypes.int64)
    # Each class that has come up was tried again with its probability until the last one came.
    again = math_ops.reduce_sum(array_ops.gather(every, drawn) * (times[-1] - times))
    tries = sampled + math_ops.round(again)

    def counts(numbers: Any) -> Any:
        one = probabilities(math_ops.cast(numbers, dtypes.float32), classes)
        return -math_ops.expm1(tries * math_ops.log1p(-math_ops.minimum(one, 1.0 - 1e-7)))

    return [drawn, counts(true_classes), counts(drawn)]
