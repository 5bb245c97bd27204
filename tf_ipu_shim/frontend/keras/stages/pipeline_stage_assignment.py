"""`keras.ipu.extensions.pipeline_stage_assignment`: assigns layers to pipeline stages."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from tensorflow.compat.v2 import distribute as distribute_lib
from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2, patches, sdk
from tf_ipu_shim.frontend.keras.stages import layer_construction
from tf_ipu_shim.frontend.keras.stages.layer_construction import ATTRIBUTE
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private import keras_members

_LAST_OUTSIDE = (2, 1)
"""The last SDK whose models may be made outside the scope."""


class PipelineStage:
    """The scope of one stage: layers made or called in it belong to the stage.

    Args:
        stage: its number, from 0.

    Raises:
        TypeError: it is not an integer.
        ValueError: the number is negative.
        RuntimeError: outside the scope of an `IPUStrategy` under SDK 2.2 or newer, or inside another stage.

    Source: `keras.ipu.PipelineStage`.

    Example:
        >>> with strategy.scope():
        ...     inputs = tf.keras.Input((16,))
        ...     with PipelineStage(0):
        ...         x = tf.keras.layers.Dense(128)(inputs)
    """

    def __init__(self, stage: int) -> None:
        self._stage = stage

    def __enter__(self) -> PipelineStage:
        from tf_ipu_shim.frontend.strategies.ipu_strategy import IPUStrategyV1

        self._stage = check_integer("`stage` of PipelineStage", self._stage)
        if self._stage < 0:
            raise ValueError(
                f"{self._stage} is not a valid pipeline stage. Stages are numbered from 0. Pass 0 or more."
            )
        if sdk.current() > _LAST_OUTSIDE and not isinstance(distribute_lib.get_strategy(), IPUStrategyV1):
            raise RuntimeError(
                "PipelineStage may only be used from within an IPUStrategy context: there is none here. "
                "Enter one first: with strategy.scope()."
            )
        if layer_construction.current.stage is not None:
            raise RuntimeError(
                "Pipeline stages must not be nested: this PipelineStage is entered inside another. Leave one "
                "before entering the next."
            )
        for root in _loaded_packages():
            layer_construction.install(keras2.module("engine.base_layer", root).Layer)
            why = "layers remember the `PipelineStage` in which they are made"
            patches.replace(
                keras2.module("engine.node", root).Node, "__init__", layer_construction.patch_stage_recording, why=why
            )
        layer_construction.current.stage = self._stage
        layer_construction.current.entered += 1
        return self

    def __exit__(self, _exception_type: Any, _value: Any, _traceback: Any) -> None:
        layer_construction.current.stage = None


def entered_stages() -> int:
    """Returns the number of stages that this thread has entered, to detect stages in a model's code."""
    return layer_construction.current.entered


class _LayerAssignment:
    """The stage of one layer."""

    def __init__(self, layer: Any, pipeline_stage: int | None) -> None:
        self._layer = layer
        self.pipeline_stage = pipeline_stage

    @property
    def layer(self) -> Any:
        """The layer."""
        return self._layer

    @property
    def pipeline_stage(self) -> int | None:
        """The stage's number as Python's integer, because it is saved with the model."""
        return self._pipeline_stage

    @pipeline_stage.setter
    def pipeline_stage(self, stage: int | None) -> None:
        # A value that is not an integer is refused when the stages are set, with the layer's name.
        self._pipeline_stage = int(stage) if isinstance(stage, numbers.Integral) else stage

    @property
    def is_nested_model(self) -> bool:
        """Returns whether this is the assignment of a model in a model: no."""
        return False


class SequentialLayerPipelineStageAssignment(_LayerAssignment):
    """The stage of a layer of a `Sequential` model.

    Args:
        layer: a layer of the model.
        pipeline_stage: its stage.

    Source: `keras.ipu.SequentialLayerPipelineStageAssignment`.
    """

    def __init__(self, layer: Any, pipeline_stage: int | None = None) -> None:
        super().__init__(layer, pipeline_stage)

    def __str__(self) -> str:
        return f"Layer {self.layer.name} is assigned to pipeline stage: {self.pipeline_stage}"


class _CallAssignment:
    """The assignment of one call of a layer or an inner model."""

    _called: Any
    _node_index: int

    @property
    def node_index(self) -> int:
        """Returns which of the layer's or model's calls."""
        return self._node_index

    @property
    def inbound_layers(self) -> Any:
        """The layers whose outputs are the call's inputs."""
        return keras_members.inbound_nodes(self._called)[self._node_index].inbound_layers


class ModelLayerPipelineStageAssignment(_LayerAssignment, _CallAssignment):
    """The stage of one call of a layer.

    Args:
        layer: a layer of the model.
        node_index: selects one of its calls.
        pipeline_stage: the stage.

    Source: `keras.ipu.ModelLayerPipelineStageAssignment`.
    """

    def __init__(self, layer: Any, node_index: int, pipeline_stage: int | None = None) -> None:
        super().__init__(layer, pipeline_stage)
        self._called, self._node_index = layer, node_index

    def __str__(self) -> str:
        inbound = ", ".join(layer.name for layer in nest.flatten(self.inbound_layers))
        return (
            f"Layer: {self.layer.name} (node index {self.node_index}), inbound layers: [{inbound}], "
            f"is assigned to pipeline stage: {self.pipeline_stage}"
        )


class FunctionalLayerPipelineStageAssignment(ModelLayerPipelineStageAssignment):
    """The stage of one call of a layer of a `Functional` model.

    Args:
        layer: a layer of the model.
        node_index: selects one of its calls.
        pipeline_stage: the stage.

    Source: `keras.ipu.FunctionalLayerPipelineStageAssignment`.
    """


class _NestedAssignment:
    """The stages of the layers of a model in a model."""

    def __init__(self, nested_model: Any, pipeline_stage_assignments: Sequence[Any]) -> None:
        self._nested_model = nested_model
        self._assignments = list(pipeline_stage_assignments)

    @property
    def nested_model(self) -> Any:
        """The inner model."""
        return self._nested_model

    @property
    def pipeline_stage_assignments(self) -> list[Any]:
        """The stages of its layers, in order."""
        return self._assignments

    @property
    def is_nested_model(self) -> bool:
        """Returns whether this is the assignment of a model in a model: yes."""
        return True

    def __str__(self) -> str:
        inner = "\n".join(f"  {line}" for assignment in self._assignments for line in str(assignment).splitlines())
        return f"Nested model {self._nested_model.name}:\n{inner}"


class SequentialNestedModelPipelineStageAssignment(_NestedAssignment):
    """The stages of the layers of a model in a `Sequential` model.

    Args:
        nested_model: the inner model.
        pipeline_stage_assignments: the pipeline stages of its layers.

    Source: `keras.ipu.SequentialNestedModelPipelineStageAssignment`.
    """


class NestedModelPipelineStageAssignment(_NestedAssignment, _CallAssignment):
    """The stages of the layers of a model in a model, for one call of it.

    Args:
        nested_model: the inner model.
        node_index: selects one of its calls.
        pipeline_stage_assignments: the pipeline stages of its layers.

    Source: `keras.ipu.NestedModelPipelineStageAssignment`.
    """

    def __init__(self, nested_model: Any, node_index: int, pipeline_stage_assignments: Sequence[Any]) -> None:
        super().__init__(nested_model, pipeline_stage_assignments)
        self._called, self._node_index = nested_model, node_index


class FunctionalNestedModelPipelineStageAssignment(NestedModelPipelineStageAssignment):
    """The stages of the layers of a model in a `Functional` model, for one call of it.

    Args:
        nested_model: the inner model.
        node_index: selects one of its calls.
        pipeline_stage_assignments: the pipeline stages of its layers.

    Source: `keras.ipu.FunctionalNestedModelPipelineStageAssignment`.
    """


def stage_of(owner: Any) -> int | None:
    """Returns the stage in which a layer or node was made; None outside stages."""
    return vars(owner).get(ATTRIBUTE)


def _loaded_packages() -> list[str]:
    import sys

    loaded = [root for root in keras2.ROOTS if f"{root}.engine.training" in sys.modules]
    return loaded or [keras2.root()]
