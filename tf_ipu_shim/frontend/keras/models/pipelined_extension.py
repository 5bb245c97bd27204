"""The base of pipelined Keras models: their stages, programs, saved options and exports for serving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.keras.models import networks, pipelined_programs, served_model
from tf_ipu_shim.frontend.keras.models.extensions_base import KerasExtensionBase
from tf_ipu_shim.frontend.keras.options import saved_options
from tf_ipu_shim.frontend.keras.training import model_step, programs
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.utilities import tf_logging

_STEP = programs.STEP_METHODS


class SavedOptions:
    """Models whose configuration is Keras' own have an entry for the IPU in it."""

    def get_config(self) -> dict[str, Any]:
        """Works like Keras', with the accumulation and pipelining options."""
        config = super().get_config()  # type: ignore[misc]
        entry = saved_options.options_to_config(self) if networks.has_own_graph(self) else None
        return config if entry is None else {**config, saved_options.ENTRY: entry}


class PipelinedExtension(KerasExtensionBase):
    """Stages that were set, stages that layers remember, programs of models with stages, and models for serving."""

    # Methods that stages of the model's graph run in the place of.
    _not_called: tuple[str, ...] = ()

    def reset_pipeline_stage_assignment(self) -> None:
        """Removes all layers from their stages: the model runs on one IPU."""
        self._ipu.stages_reset = True
        self._ipu.stages = None
        self._ipu.forget_programs()

    def export_for_ipu_serving(
        self,
        export_dir: str,
        batch_size: int | None = None,
        output_names: Any = None,
        preprocessing_step: Any = None,
        preprocessing_step_signature: Any = None,
        postprocessing_step: Any = None,
        postprocessing_step_signature: Any = None,
        purge_export_dir: bool = False,
    ) -> Any:
        """Writes a SavedModel that TensorFlow Serving runs, on IPUs if they are available.

        Args:
            export_dir: its directory, which must be empty or not exist.
            batch_size: samples of a request; left out if the model's inputs have it.
            output_names: names of the outputs; by default `output_0`, `output_1` and so on.
            preprocessing_step: runs before the model on the CPU; a request then has its arguments.
            preprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
            postprocessing_step: run on the CPU after the model.
            postprocessing_step_signature: a `tf.TensorSpec` for each of its arguments.
            purge_export_dir: whether the directory is emptied first.

        Returns:
            A `tf.function` that runs the exported model. It returns a list, or with `output_names` a dictionary.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: a dimension of the inputs is unknown, the directory is not empty, or the steps do not fit
                together.
            RuntimeError: the model's inputs are unknown: it is not built.
        """
        return served_model.export_model(
            self,
            export_dir,
            batch_size,
            output_names=output_names,
            preprocessing_step=preprocessing_step,
            preprocessing_step_signature=preprocessing_step_signature,
            postprocessing_step=postprocessing_step,
            postprocessing_step_signature=postprocessing_step_signature,
            purge_export_dir=purge_export_dir,
        )

    def _set_stages(self, stages: list[Any]) -> None:
        self._ipu.stages = list(stages)
        self._ipu.forget_programs()

    def _is_pipelined(self) -> bool:
        if self._ipu.stages is not None:
            return True
        return not self._ipu.stages_reset and self._has_recorded_stages()

    def _has_layer_graph(self) -> bool:
        return networks.has_own_graph(self)

    def _has_recorded_stages(self) -> bool:
        """Returns whether layers were made or called in a `PipelineStage`."""
        raise NotImplementedError

    def _make_staged_model(self, infeed: Any) -> pipelined_programs.StagedModel:
        """Returns the model in stages."""
        raise NotImplementedError

    # Names under which Graphcore's own tests ask what a model was told.

    @property
    def _pipeline_stage_assignment_valid(self) -> bool:
        return self._is_pipelined()

    @property
    def _pipelining_gradient_accumulation_steps_per_replica(self) -> int | None:
        return self._ipu.options.pipelining_steps

    @property
    def _pipelining_device_mapping(self) -> list[int] | None:
        return self._ipu.options.device_mapping

    @property
    def _pipelining_accumulate_outfeed(self) -> bool | None:
        return self._ipu.options.accumulate_outfeed

    @property
    def _gradient_accumulation_reduction_method(self) -> GradientAccumulationReductionMethod:
        chosen = self._ipu.options
        pipelined = chosen.pipelining_steps is not None
        return GradientAccumulationReductionMethod.parse(
            chosen.pipelining_reduction if pipelined else chosen.accumulation_reduction
        )

    @property
    def _experimental_pipelining_normalize_gradients(self) -> bool:
        return self._gradient_accumulation_reduction_method is GradientAccumulationReductionMethod.MEAN

    def _stage_count(self) -> int:
        return self._make_staged_model(None).stages

    def _shards(self) -> int:
        if not self._is_pipelined():
            return 1
        mapping = self._ipu.options.device_mapping
        return (max(mapping) + 1) if mapping else self._stage_count()

    def _build_program(self, mode: str, infeed: Any, outfeed: Any, steps: int) -> Callable[[], None]:
        if not self._is_pipelined():
            return super()._build_program(mode, infeed, outfeed, steps)
        programs.check_not_overridden(self, (_STEP[mode], *self._not_called), "for pipelined models")
        if mode == "fit":
            programs.check_no_custom_minimize(cast(Any, self).optimizer)
            self._warn_of_moving_statistics()
        programs.create_variables(self, mode, infeed)
        staged = self._make_staged_model(infeed)
        if staged.stages == 1:
            raise ValueError(
                "A pipelined model needs at least two pipeline stages, and all layers of this one are in stage 0. "
                "Assign layers to stage 1, or call reset_pipeline_stage_assignment()."
            )
        return pipelined_programs.pipelined_program(staged, mode, infeed, outfeed, steps, self._ipu.options)

    def _warn_of_moving_statistics(self) -> None:
        batch_normalization = keras2.module("layers", model_step.keras_package(self)).BatchNormalization
        model: Any = self
        names = [
            layer.name
            for layer in keras_members.flatten_layers(model)
            if isinstance(layer, batch_normalization) and layer.trainable
        ]
        if names:
            tf_logging.warn(
                f"The moving statistics of {', '.join(names)} are updated with each mini-batch here. On IPUs a "
                "pipeline writes variables once for all mini-batches of an update, so they differ there. Use group "
                "or layer normalization in pipelined models."
            )

    def _accumulates_outfeed(self, mode: str) -> bool:
        return self._is_pipelined() and bool(self._ipu.options.accumulate_outfeed) and mode != "predict"

    def _result_unpacker(self, mode: str) -> Callable[[Any], Any]:
        if not self._is_pipelined():
            return super()._result_unpacker(mode)
        if mode == "predict":
            return self._predictions
        if self._accumulates_outfeed(mode):
            return lambda values: nest.map_structure(lambda value: value[-1], _unpack_metrics(values))
        return _unpack_metrics

    def _predictions(self, values: Any) -> Any:
        return nest.pack_sequence_as(self._make_staged_model(None).structure, nest.flatten(values))


def _unpack_metrics(values: Any) -> Any:
    """Unpacks the last stage's metrics: a list in training, a dictionary in evaluation."""
    return values if isinstance(values, dict) else values[0]
