"""`keras.ipu.extensions.functional_extensions`: assigns pipeline stages to the layer calls of `Functional` models."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.keras.models import networks
from tf_ipu_shim.frontend.keras.models.network_extension import NetworkExtension
from tf_ipu_shim.frontend.keras.models.pipelined_extension import SavedOptions
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import (
    FunctionalLayerPipelineStageAssignment,
    FunctionalNestedModelPipelineStageAssignment,
    PipelineStage,
)
from tf_ipu_shim.frontend.keras.training.model_step import keras_package
from tf_ipu_shim.tf_private import keras_members


class FunctionalExtension(SavedOptions, NetworkExtension):
    """IPU extension of `Functional` models.

    Source: `keras.ipu.extensions.functional_extensions.FunctionalExtension`.

    Example:
        >>> with strategy.scope():
        ...     inputs = tf.keras.Input((4,))
        ...     hidden = tf.keras.layers.Dense(8, name="encoder")(inputs)
        ...     model = tf.keras.Model(inputs, tf.keras.layers.Dense(4, name="decoder")(hidden))
        ...     stages = model.get_pipeline_stage_assignment()
        ...     for assignment in stages:
        ...         assignment.pipeline_stage = 0 if assignment.layer.name.startswith("encoder") else 1
        ...     model.set_pipeline_stage_assignment(stages)
    """

    _not_called = ("call",)
    _layer_kind = FunctionalLayerPipelineStageAssignment
    _nested_kind = FunctionalNestedModelPipelineStageAssignment

    def _init_set_name(self, name: str | None, zero_based: bool = True) -> None:
        model: Any = self
        package = keras_package(model)
        functional = keras2.module("engine.functional", package).Functional
        if not name and getattr(model, "_ipu_original", None) is functional:  # Keras asks for its own class, too
            name = keras2.module("backend", package).unique_object_name("model", zero_based=zero_based)
        super()._init_set_name(name, zero_based)  # type: ignore[misc]

    def _init_graph_network(self, *args: Any, **kwargs: Any) -> None:
        super()._init_graph_network(*args, **kwargs)  # type: ignore[misc]
        if not networks.is_sequential(self):
            self._check_recorded_stages()

    def get_config(self) -> dict[str, Any]:
        """Works like Keras', with an entry for the accumulation and pipelining options."""
        return super().get_config()

    # Keras asks whether the user's class defines one, and clones the model in another way then.
    keras_members.mark_default(get_config)

    def _network(self) -> networks.Network:
        return networks.functional_network(self)


__all__ = [
    "FunctionalExtension",
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "PipelineStage",
]
