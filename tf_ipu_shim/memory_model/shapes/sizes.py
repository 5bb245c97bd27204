"""Computes bytes of tensors, unchanged or under what-if changes (float16, smaller mini-batch).

A program that does not fit is planned again with other sizes. Its ops and their inputs stay the same. Only the bytes of
a tensor change, by its dtype and by whether one of its axes is the mini-batch. That is followed from the feeds: see
`batch_axes` for XLA's instructions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.memory_model.hlo.instructions import shape_bytes
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec, bytes_of
from tf_ipu_shim.tf_private.protos import types_pb2, xla_data_pb2


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Byte sizes of tensors under the changes.

    Args:
        float16: whether 32-bit floats count as 16-bit ones.
        batch_divisor: the number of parts into which tensors with a mini-batch axis are divided; one of them counts.

    Example:
        >>> weights = TensorSpec(types_pb2.DT_FLOAT, (10, 10))
        >>> Sizes().of(weights), Sizes(float16=True).of(weights), Sizes(batch_divisor=2).of(weights)
        (400, 200, 400)
        >>> Sizes(batch_divisor=4).of(weights._replace(axis=Axis(0)))
        100
    """

    float16: bool = False
    batch_divisor: int = 1

    @property
    def changed(self) -> bool:
        """Returns whether any size differs from the actual one."""
        return self.float16 or self.divides_batch

    @property
    def divides_batch(self) -> bool:
        """Returns whether the mini-batch is smaller than the actual one."""
        return self.batch_divisor > 1

    def of(self, known: TensorSpec) -> int:
        """Returns the bytes of a tensor; 0 if its shape is unknown or it has no fixed size."""
        return self._changed(bytes_of(known), known.type == types_pb2.DT_FLOAT, known.axis)

    def of_shape(self, shape: Any, axis: Axis | None = None) -> int:
        """Returns the bytes of an array of an XLA shape."""
        size = shape_bytes(shape)
        return self._changed(size, shape.element_type == xla_data_pb2.F32, axis) if self.changed else size

    def in_flight(self, pipeline: PipelineDescription) -> PipelineDescription:
        """Returns a pipeline whose mini-batches have the changed sizes."""
        if not self.changed:
            return pipeline

        def changed(sizes: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(self._changed(size, True, Axis(0)) for size in sizes)

        return dataclasses.replace(
            pipeline,
            input_bytes=changed(pipeline.input_bytes),
            kept_bytes=changed(pipeline.kept_bytes),
            checkpoint_bytes=changed(pipeline.checkpoint_bytes),
        )

    def _changed(self, size: int, is_float: bool, axis: Axis | None) -> int:
        if self.float16 and is_float:
            size = -(-size // 2)
        return -(-size // self.batch_divisor) if axis is not None else size
