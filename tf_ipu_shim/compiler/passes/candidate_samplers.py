"""Replaces TensorFlow's candidate samplers, which XLA lacks, by functions of supported ops.

A sampler draws classes, for losses over a part of them. With replacement that is one random op. Without it TensorFlow
tries until it has enough classes, and the expected counts reflect the number of tries. Here the time until a class is
first drawn is exponentially distributed with its probability. The classes with the smallest times, in order, have the
distribution of repeated draws. The number of tries is replaced by its expected value after these times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import op_functions, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.tf_private.operations import array_ops, math_ops, nn_ops, random_ops
from tf_ipu_shim.tf_private.protos import node_def_pb2

_TINY = 1e-30  # no draw is zero, whose logarithm is infinite


def replace_samplers(functions: Functions) -> None:
    """Replaces the candidate samplers of a program."""
    op_functions.replace_ops(functions, {"LogUniformCandidateSampler": _sampler, "UniformCandidateSampler": _sampler})


def _sampler(node: Node) -> op_functions.Replacement:
    """Returns the replacement of a sampler."""
    attributes = node.proto.attr
    sampled, classes = attributes["num_sampled"].i, attributes["range_max"].i
    if attributes["unique"].b and sampled > classes:
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            f"{node.op} {node.name} is to draw {sampled} different classes, but the sampler's range "
            f"only has {classes}. Draw fewer, or draw with replacement (unique=False).",
        )
    seeds = attributes["seed"].i, attributes["seed2"].i
    drawing = _without_replacement if attributes["unique"].b else _with_replacement
    probabilities = _log_uniform if node.op == "LogUniformCandidateSampler" else _uniform

    def seed(inner: node_def_pb2.NodeDef) -> None:
        if "seed2" in inner.attr:
            inner.attr["seed"].i, inner.attr["seed2"].i = seeds
            inner.attr[vocabulary.RESTARTING_ATTRIBUTE].b = any(seeds)

    return op_functions.Replacement(
        lambda _, true_classes: drawing(true_classes, sampled, classes, probabilities), finish=seed
    )


_Probabilities = Callable[[Any, int], Any]


def _uniform(class_ids: Any, classes: int) -> Any:
    return array_ops.ones_like(class_ids) / classes


def _log_uniform(class_ids: Any, classes: int) -> Any:
    """P(class) = (log(class + 2) - log(class + 1)) / log(classes + 1)."""
    return math_ops.log1p(1.0 / (class_ids + 1.0)) / math.log1p(classes)


def _with_replacement(true_classes: Any, sampled: int, classes: int, probabilities: _Probabilities) -> list[Any]:
    if probabilities is _uniform:
        drawn = random_ops.random_uniform([sampled], 0, classes, dtypes.int64)
    else:
        # A value below n has the probability log(n + 1) / log(classes + 1).
        values = math_ops.expm1(random_ops.random_uniform([sampled]) * math.log1p(classes))
        drawn = math_ops.minimum(math_ops.cast(values, dtypes.int64), classes - 1)

    def counts(class_ids: Any) -> Any:
        return probabilities(math_ops.cast(class_ids, dtypes.float32), classes) * sampled

    return [drawn, counts(true_classes), counts(drawn)]


def _without_replacement(true_classes: Any, sampled: int, classes: int, probabilities: _Probabilities) -> list[Any]:
    every = probabilities(math_ops.cast(math_ops.range(classes), dtypes.float32), classes)
    times = -math_ops.log(random_ops.random_uniform([classes], _TINY)) / every
    negative, drawn = nn_ops.top_k(-times, sampled)
    times, drawn = -negative, math_ops.cast(drawn, dtypes.int64)
    # Each class that has come up was tried again with its probability until the last one came.
    probability = math_ops.reduce_sum(array_ops.gather(every, drawn) * (times[-1] - times))
    tries = sampled + math_ops.round(probability)

    def counts(class_ids: Any) -> Any:
        single_try = probabilities(math_ops.cast(class_ids, dtypes.float32), classes)
        return -math_ops.expm1(tries * math_ops.log1p(-math_ops.minimum(single_try, 1.0 - 1e-7)))

    return [drawn, counts(true_classes), counts(drawn)]
