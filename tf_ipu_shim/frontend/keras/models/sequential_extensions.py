"""`keras.ipu.extensions.sequential_extensions`: assigns pipeline stages to the layers of `Sequential` models."""

from __future__ import annotations

import numbers
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.frontend.keras.models import networks
from tf_ipu_shim.frontend.keras.models.pipelined_extension import PipelinedExtension, SavedOptions
from tf_ipu_shim.frontend.keras.models.pipelined_programs import StagedModel
from tf_ipu_shim.frontend.keras.stages import assignments as checks
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import (
    SequentialLayerPipelineStageAssignment,
    SequentialNestedModelPipelineStageAssignment,
    stage_of,
)


class SequentialExtension(SavedOptions, PipelinedExtension):
    """IPU extension of `Sequential` models.

    Source: `keras.ipu.extensions.sequential_extensions.SequentialExtension`.

    Example:
        >>> with strategy.scope():
        ...     model = tf.keras.Sequential([tf.keras.layers.Dense(4) for _ in range(8)])
        ...     stages = model.get_pipeline_stage_assignment()
        ...     for number, assignment in enumerate(stages):
        ...         assignment.pipeline_stage = number // 4
        ...     model.set_pipeline_stage_assignment(stages)
    """

    _not_called = ("call",)

    def add(self, layer: Any) -> None:
        """Works like Keras'; stages that were set are forgotten.

        Args:
            layer: the new last layer.
        """
        self._reset_stages()
        super().add(layer)  # type: ignore[misc]

    def pop(self) -> None:
        """Works like Keras'; stages that were set are forgotten."""
        self._reset_stages()
        super().pop()  # type: ignore[misc]

    def _reset_stages(self) -> None:
        if self._ipu.stages is not None:
            self._ipu.stages = None
            self._ipu.forget_programs()

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """Returns the pipeline stage of each layer, in the order of the layers; None if it has none."""
        return list(self._ipu.stages) if self._ipu.stages is not None else _assignments(self)

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: list[Any]) -> None:
        """Sets the pipeline stage of each layer.

        Args:
            pipeline_stage_assignment: one for each layer, in order; the stage's number is enough.

        Raises:
            TypeError: a stage is not an integer.
            ValueError: they do not match the layers, or a stage is skipped.
        """
        model: Any = self
        if isinstance(pipeline_stage_assignment, list) and len(pipeline_stage_assignment) == len(model.layers):
            pipeline_stage_assignment = [
                SequentialLayerPipelineStageAssignment(layer, int(stage))
                if isinstance(stage, numbers.Integral)
                else stage
                for layer, stage in zip(model.layers, pipeline_stage_assignment)
            ]
        _check_assignments(self, pipeline_stage_assignment)
        self._set_stages(pipeline_stage_assignment)

    def print_pipeline_stage_assignment_summary(self, line_length: int | None = None, print_fn: Any = None) -> None:
        """Prints the pipeline stage of each layer.

        Args:
            line_length: characters of a line.
            print_fn: prints a line; `print` when left out.
        """
        rows = [
            [
                [f"{assignment.layer.name} ({type(assignment.layer).__name__})"],
                [str(assignment.pipeline_stage)],
            ]
            for assignment in _flatten_assignments(self.get_pipeline_stage_assignment())
        ]
        checks.print_summary(self, [("Layer (type)", 0.5), ("Pipeline Stage", 1.0)], rows, line_length, print_fn)

    def _has_recorded_stages(self) -> bool:
        model: Any = self
        return any(stage_of(layer) is not None for layer in model.layers)

    def _make_staged_model(self, infeed: Any) -> StagedModel:
        stages = self._ipu.stages
        if stages is None:
            stages = _assignments(self)
            _check_assignments(self, stages)
        model = networks.steps_of_sequential(self, (), stages)

        def bind(x: Any) -> list[Any]:
            return list(nest.flatten(x))

        return StagedModel(self, *model, bind, 0)


def _assignments(model: Any) -> list[Any]:
    assignments: list[Any] = []
    for layer in model.layers:
        if networks.is_nested(layer):
            assignments.append(
                SequentialNestedModelPipelineStageAssignment(layer, layer.get_pipeline_stage_assignment())
            )
        else:
            assignments.append(SequentialLayerPipelineStageAssignment(layer, stage_of(layer)))
    return assignments


def _flatten_assignments(assignments: list[Any]) -> list[Any]:
    flat = []
    for assignment in assignments:
        flat += (
            _flatten_assignments(assignment.pipeline_stage_assignments) if assignment.is_nested_model else [assignment]
        )
    return flat


def _check_assignments(model: Any, assignments: Any) -> None:
    wording = checks.current_wording()
    checks.check_assignments(assignments, len(model.layers), wording)
    assignment_types = (SequentialLayerPipelineStageAssignment, SequentialNestedModelPipelineStageAssignment)
    if not all(isinstance(assignment, assignment_types) for assignment in assignments):
        must = "need to" if wording == checks.Wording.FIRST else "must"
        raise ValueError(
            f"All elements of `pipeline_stage_assignment` {must} be instances of "
            "`SequentialLayerPipelineStageAssignment` or `SequentialNestedModelPipelineStageAssignment`; "
            "expected no others. Pass what get_pipeline_stage_assignment() returned."
        )
    _check_nested_assignment(model, assignments)
    previous = 0
    for index, (layer, outer) in enumerate(zip(model.layers, assignments)):
        assigned_layer = outer.nested_model if outer.is_nested_model else outer.layer
        if assigned_layer is not layer:
            raise ValueError(
                f"The provided assignment at index {index} `pipeline_stage_assignment` is for layer "
                f"{assigned_layer.name}, but the layer in the Sequential model at index {index} is {layer.name}. "
                "Both must "
                "be equal. Keep the order of the layers."
            )
        for inner in _flatten_assignments([outer]):
            previous = _check_stage_order(
                inner, previous, first=index == 0 and inner is _flatten_assignments([outer])[0]
            )


def _check_nested_assignment(model: Any, assignments: list[Any]) -> None:
    """A model with models in it is a graph to Graphcore, and its messages are those about graphs."""
    if not any(networks.is_nested(layer) for layer in model.layers):
        return
    for layer, assignment in zip(model.layers, assignments):
        nested = networks.is_nested(layer)
        if assignment.is_nested_model != nested:
            kind = SequentialNestedModelPipelineStageAssignment if nested else SequentialLayerPipelineStageAssignment
            raise checks.wrong_kind_error(layer.name, nested, [kind], assignment, checks.current_wording())
        assigned_layer = assignment.nested_model if nested else assignment.layer
        if assigned_layer is not layer:
            raise checks.wrong_order_error(layer.name, assigned_layer.name)


def _check_stage_order(assignment: Any, previous: int, first: bool) -> int:
    checks.check_stage(assignment.layer.name, assignment.pipeline_stage)
    if assignment.pipeline_stage is None:
        raise ValueError(f"Layer {assignment.layer.name} has not been assigned a pipeline stage. Give every layer one.")
    if first and assignment.pipeline_stage != 0:
        raise ValueError(
            "The first layer in a pipelined sequential model needs to be assigned to the 0th pipeline stage, however "
            f"it was assigned to {assignment.pipeline_stage}. Assign the first layer to stage 0."
        )
    if assignment.pipeline_stage not in (previous, previous + 1):
        raise ValueError(
            f"Layer {assignment.layer.name} has been assigned to pipeline stage {assignment.pipeline_stage}, "
            f"however the previous layer in the Sequential model was assigned to pipeline stage {previous}. "
            "A layer in a Sequential model can only be assigned to the same pipeline stage as the previous layer or to "
            "the next pipeline stage."
            " Assign the layer to one of these two stages."
        )
    return assignment.pipeline_stage
