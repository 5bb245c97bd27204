"""How many bytes tensors have: as they are, or as they would be with 16-bit floats or half of the mini-batch.

A program that does not fit is planned anew with other sizes. Its ops stay the same, and so does what they are given:
what changes is what a tensor counts, by its type and by whether one of its axes is the mini-batch. That is followed
from the feeds: see `batch_axes` for XLA's instructions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.memory_model.hlo.instructions import shape_bytes
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.memory_model.shapes.shape_inference import Known, bytes_of
from tf_ipu_shim.tf_private.protos import types_pb2, xla_data_pb2


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What tensors count.

    Args:
        half_floats: whether 32-bit floats count as 16-bit ones.
        batch_parts: of so many parts of what has the mini-batch as an axis one counts.

    Example:
        >>> weights = Known(types_pb2.DT_FLOAT, (10, 10))
        >>> Sizes().of(weights), Sizes(half_floats=True).of(weights), Sizes(batch_parts=2).of(weights)
        (400, 200, 400)
        >>> Sizes(batch_parts=4).of(weights._replace(axis=Axis(0)))
        100
    """

    half_floats: bool = False
    batch_parts: int = 1

    @property
    def changed(self) -> bool:
        """Whether anything counts otherwise than it is."""
        return self.half_floats or self.cuts_batch

    @property
    def cuts_batch(self) -> bool:
        """Whether the mini-batch counts less than it is."""
        return self.batch_parts > 1

    def of(self, known: Known) -> int:
        """Bytes of a tensor; 0 where its shape is not known, and for what has no fixed size."""
        return self._changed(bytes_of(known), known.type == types_pb2.DT_FLOAT, known.axis)

    def of_shape(self, shape: Any, axis: Axis | None = None) -> int:
        """Bytes of an array of an XLA shape."""
        size = shape_bytes(shape)
        return self._changed(size, shape.element_type == xla_data_pb2.F32, axis) if self.changed else size

    def in_flight(self, pipeline: PipelineDescription) -> PipelineDescription:
        """A pipeline, whose mini-batches consist of floats and of what has the mini-batch as an axis."""
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
        if self.half_floats and is_float:
            size = -(-size // 2)
        return -(-size // self.batch_parts) if axis is not None else size
