"""Defines a pipeline's schedules, recomputation modes and checkpoints, and the Poplar options of its stages."""

from __future__ import annotations

import enum
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.ops import planner_options
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.machine.pipelines import pipeline_schedule
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2


class PipelineSchedule(enum.IntEnum):
    """The order in which stages work on mini-batches.

    Attributes:
        Grouped: forward and backward stages of different mini-batches at the same time.
        Interleaved: forward and backward alternate; fewer activations are kept.
        Sequential: one stage at a time.
    """

    Grouped = 0
    Interleaved = 1
    Sequential = 2

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"  # an IntEnum prints its number since Python 3.11


class RecomputationMode(enum.Enum):
    """The time at which the backward pass recomputes activations: before it begins, or as it proceeds."""

    Auto = 0
    RecomputeThenBackpropagate = 1
    RecomputeAndBackpropagateInterleaved = 2


class PipelineStageOptions:
    """Poplar options of one stage. The cycle model reads `partialsType` and `availableMemoryProportion` of matmuls.

    Args:
        convolution_options: strings by option name.
        matmul_options: strings by option name.
        slice_options: strings by option name.

    Raises:
        TypeError: one is not a dictionary.

    Source: `tensorflow.python.ipu.ops.pipelining_ops.PipelineStageOptions`.

    Example:
        >>> options = PipelineStageOptions(matmul_options={"availableMemoryProportion": "0.1"})
    """

    def __init__(
        self,
        convolution_options: dict[str, str] | None = None,
        matmul_options: dict[str, str] | None = None,
        slice_options: dict[str, str] | None = None,
    ) -> None:
        self.convolution_options = self._checked("convolution_options", convolution_options)
        self.matmul_options = self._checked("matmul_options", matmul_options)
        self.slice_options = self._checked("slice_options", slice_options)

    @property
    def unread(self) -> dict[str, dict[str, str]]:
        """The options that the cycle model does not read, by argument."""
        products = {
            "convolution_options": planner_options.find_ignored_options(self.convolution_options),
            "matmul_options": planner_options.find_ignored_options(self.matmul_options),
        }
        return {name: options for name, options in {**products, "slice_options": self.slice_options}.items() if options}

    def __repr__(self) -> str:
        set_options = {name: options for name, options in vars(self).items() if options}
        return f"PipelineStageOptions({', '.join(f'{name}={options!r}' for name, options in set_options.items())})"

    @staticmethod
    def _checked(name: str, options: Any) -> dict[str, str]:
        if options is not None and not isinstance(options, dict):
            raise TypeError(
                f"PipelineStageOptions.{name} must be dictionary, not {type(options).__name__}. Pass a dictionary."
            )
        return dict(options or {})


def recomputation_checkpoint(tensors: Any, name: str | None = None) -> Any:
    """Marks values that recomputation in a pipeline keeps, so that it begins again from them.

    It needs less memory at a time, but keeps the marked values. Values and gradients pass unchanged.

    Args:
        tensors: a tensor, or a structure of tensors.
        name: the name of the operations.

    Returns:
        The same values, in the same structure.

    Source: `tensorflow.python.ipu.ops.pipelining_ops.recomputation_checkpoint`.

    Example:
        >>> recomputation_checkpoint(tf.nn.relu(tf.constant([-1.0, 2.0]))).numpy().tolist()
        [0.0, 2.0]
    """
    attribute = attr_value_pb2.AttrValue(b=True)
    with (
        ops.name_scope(name, "recomputation_checkpoint"),
        tracing.attribute_scope({vocabulary.CHECKPOINT_ATTRIBUTE: attribute}),
    ):
        return nest.map_structure(array_ops.identity, tensors)


def mini_batch_multiple(schedule: PipelineSchedule, stages: int, training: bool) -> int:
    """Returns the number that must divide the number of mini-batches.

    Example:
        >>> mini_batch_multiple(PipelineSchedule.Grouped, stages=4, training=True)
        8
    """
    return pipeline_schedule.multiple_of(schedule.name, stages, training)
