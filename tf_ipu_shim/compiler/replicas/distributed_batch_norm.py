"""Shares batch-normalisation statistics between replicas in training.

Neighbouring replicas in groups of `OPTION` compute mean and variance of all their samples together, and also the
gradients. A group normalises as one replica with the whole batch would. TensorFlow's ops handle one replica: functions
replace them, with sums over the group.
"""

from __future__ import annotations

import functools
from typing import Any

from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.ir import op_functions
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.tf_private.operations import array_ops, math_ops

OPTION = "norms.experimental.distributed_batch_norm_replica_group_size"
_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_GRADIENTS = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")


def share_statistics(functions: Functions, replicas: int, group_size: int) -> None:
    """Makes replicas share the statistics of the batch normalisations that they train."""
    if replicas < 2 or group_size < 2:
        return
    rule = functools.partial(_in_groups, replicas, group_size)
    op_functions.replace_ops(functions, dict.fromkeys((*_NORMS, *_GRADIENTS), rule))


def _in_groups(replicas: int, size: int, node: Node) -> op_functions.Replacement | None:
    attributes = node.proto.attr
    if not attributes["is_training"].b:
        return None
    if replicas % size:
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            f"{node.name} ({node.op}): the {replicas} replicas cannot be put into groups of {size}. {OPTION} has to "
            "divide their number."
            " Choose a divisor of the number of replicas.",
        )
    layout = attributes["data_format"].s.decode() or "NHWC"
    epsilon = attributes["epsilon"].f
    if node.op in _GRADIENTS:
        return op_functions.Replacement(functools.partial(_gradients, _Group(size, layout), epsilon), num_inputs=5)
    factor = attributes["exponential_avg_factor"].f if "exponential_avg_factor" in attributes else 1.0
    return op_functions.Replacement(functools.partial(_normalised, _Group(size, layout), epsilon, factor))


class _Group:
    """Sums over the samples of a group of replicas.

    Args:
        layout: `"NHWC"`, `"NCHW"`, `"NDHWC"` or `"NCDHW"`.
    """

    def __init__(self, size: int, layout: str) -> None:
        self._size = size
        self._axes = [axis for axis, label in enumerate(layout) if label != "C"]
        self._broadcast = [-1 if label == "C" else 1 for label in layout]

    def sum(self, values: Any) -> Any:
        """Returns the sum for each channel, [channels], over this replica."""
        return math_ops.reduce_sum(values, self._axes)

    def mean(self, values: Any) -> Any:
        """Returns the mean for each channel, [channels], over the group."""
        return self.over_group(self.sum(values)) / self.count(values)

    def over_group(self, values: Any) -> Any:
        """Returns the sum over the replicas of the group."""
        return plugin.load().ops.ipu_cross_replica_sum(values, replica_group_size=self._size)

    def count(self, values: Any) -> Any:
        """Returns the group's number of elements per channel."""
        sizes = array_ops.gather(array_ops.shape(values), self._axes)
        return math_ops.cast(math_ops.reduce_prod(sizes) * self._size, dtypes.float32)

    def as_channels(self, values: Any) -> Any:
        """Reshapes per-channel values to broadcast against samples."""
        return array_ops.reshape(values, self._broadcast)


def _normalised(
    group: _Group, epsilon: float, factor: float, _: Any, x: Any, scale: Any, offset: Any, mean: Any, variance: Any
) -> list[Any]:
    values = math_ops.cast(x, dtypes.float32)
    centre = group.mean(values)
    centred = values - group.as_channels(centre)
    spread = group.mean(math_ops.square(centred))
    y = centred * group.as_channels(math_ops.rsqrt(spread + epsilon) * scale) + group.as_channels(offset)
    count = group.count(values)
    unbiased = spread * (count / math_ops.maximum(count - 1.0, 1.0))
    if factor == 1.0:
        retained = [array_ops.identity(centre), unbiased]
    else:
        retained = [mean + factor * (centre - mean), variance + factor * (unbiased - variance)]
    reserved = [array_ops.identity(centre), array_ops.identity(spread), array_ops.zeros_like(centre)]
    return [math_ops.cast(y, x.dtype), *retained, *reserved]


def _gradients(
    group: _Group, epsilon: float, _: Any, dy: Any, x: Any, scale: Any, mean: Any, variance: Any
) -> list[Any]:
    """Computes the gradients; scale's and offset's are this replica's, and an optimizer reduces them."""
    slopes, values = (math_ops.cast(tensor, dtypes.float32) for tensor in (dy, x))
    inverse = math_ops.rsqrt(variance + epsilon)
    normal = (values - group.as_channels(mean)) * group.as_channels(inverse)
    of_offset, of_scale = group.sum(slopes), group.sum(slopes * normal)
    count = group.count(values)
    shared = group.as_channels(group.over_group(of_offset) / count) + normal * group.as_channels(
        group.over_group(of_scale) / count
    )
    of_x = (slopes - shared) * group.as_channels(inverse * scale)
    return [math_ops.cast(of_x, x.dtype), of_scale, of_offset]
