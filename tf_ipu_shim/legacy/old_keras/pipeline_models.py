"""`tensorflow.python.ipu.keras.pipeline`: Keras models of SDK 1.2 to 2.1 over several IPUs, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2, sdk
from tf_ipu_shim.frontend.keras.models.functional_extensions import FunctionalExtension
from tf_ipu_shim.frontend.keras.models.pipelined_programs import StagedModel
from tf_ipu_shim.frontend.keras.models.sequential_extensions import SequentialExtension
from tf_ipu_shim.frontend.keras.stages import stage_plan
from tf_ipu_shim.frontend.keras.training.model_step import keras_package
from tf_ipu_shim.legacy.old_keras import keras_packages
from tf_ipu_shim.legacy.old_keras.layer_replacement import IPULayerReplacer
from tf_ipu_shim.legacy.old_keras.models import FUNCTIONAL, SEQUENTIAL, check_layers, dispatched, init_graph
from tf_ipu_shim.legacy.old_keras.old_arguments import refuse_deleted, remember
from tf_ipu_shim.legacy.old_keras.old_pipelined import OLDER_COUNTS, OPTIONS, Pipelined

_PIPELINED_MODEL_REFUSED = (1, 3), (1, 5)
_ANY_ORDER_OF_STAGES_SINCE = (2, 0)


class PipelineModelMethods(Pipelined, FunctionalExtension):
    """A model with inputs and outputs whose layers are in the pipeline stages they were called in.

    Args:
        *args: inputs and outputs: Keras tensors.
        gradient_accumulation_count: mini-batches for each update of the weights; SDKs up to 1.3: `pipeline_depth`.
        gradient_accumulation_dtype: the dtype of the summed gradients; the weights' dtype by default.
        batch_serialization_iterations: mini-batches that a stage works through one after another.
        device_mapping: the IPU of each stage; stage i on IPU i when left out.
        pipeline_schedule: a `PipelineSchedule`; `Grouped` when left out.
        recomputation_mode: a `RecomputationMode`. Results do not depend on it.
        forward_propagation_stages_poplar_options: the Poplar options of each forward stage.
        backward_propagation_stages_poplar_options: the Poplar options of each backward stage.
        weight_update_poplar_options: the Poplar options of the weight update.
        offload_weight_update_variables: which memory of the real device holds optimizer state. Results do not depend on
            it.
        replicated_optimizer_state_sharding: see `pipelining_ops.pipeline`.
        offload_activations: which memory of the real device holds activations. Results do not depend on it.
        offload_gradient_accumulation_buffers: which memory of the real device holds sums. Results do not depend on it.
        replicated_weight_sharding: see `pipelining_ops.pipeline`.
        offload_weights: which memory of the real device holds weights. Results do not depend on it.
        layer_replacement: whether to replace Keras' layers by layers of `ipu.keras.layers`, if they exist.
        **kwargs: `inputs`, `outputs`, `name`.

    Raises:
        TypeError: the count is missing.
        ValueError: a layer has no stage, a stage is empty, or a layer's input comes from a later stage. Up to SDK 1.4
            also: stages go down in the order in which Keras runs the layers.
        RuntimeError: SDK 2.2 to 2.5 is emulated.

    Source: `tensorflow.python.ipu.keras.pipeline.PipelineModel`.

    Example:
        >>> with ipu.ipu_strategy.IPUStrategy().scope():
        ...     inputs = tf.keras.Input((16,))
        ...     with ipu.keras.PipelineStage(0):
        ...         x = tf.keras.layers.Dense(8)(inputs)
        ...     with ipu.keras.PipelineStage(1):
        ...         x = tf.keras.layers.Dense(1)(x)
        ...     model = ipu.keras.PipelineModel(inputs, x, gradient_accumulation_count=8)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes a model of the class for the Keras package of the layers."""
        refuse_deleted(cls.__name__, "Model")
        parts = (args[:2], kwargs.get("inputs"), kwargs.get("outputs"))
        kind = dispatched(cls, PipelineModelMethods, FUNCTIONAL, parts)
        return super().__new__(cls, *args, **kwargs) if kind is cls else kind(*args, **kwargs)

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int | None = None,
        gradient_accumulation_dtype: Any = None,
        batch_serialization_iterations: int = 1,
        device_mapping: Sequence[int] | None = None,
        pipeline_schedule: Any = None,
        recomputation_mode: Any = None,
        forward_propagation_stages_poplar_options: Any = None,
        backward_propagation_stages_poplar_options: Any = None,
        weight_update_poplar_options: Any = None,
        offload_weight_update_variables: bool | None = None,
        replicated_optimizer_state_sharding: bool = False,
        offload_activations: bool | None = None,
        offload_gradient_accumulation_buffers: bool | None = None,
        replicated_weight_sharding: bool | None = None,
        offload_weights: bool | None = None,
        layer_replacement: bool = False,
        **kwargs: Any,
    ) -> None:
        options = {name: value for name, value in locals().items() if name in OPTIONS}
        older = {name: kwargs.pop(name, None) for name in OLDER_COUNTS}
        init_graph(super().__init__, keras_package(self), args, kwargs, layer_replacement)
        self._remember_pipeline(gradient_accumulation_count, older, options)
        remember(self, shard_count=self._shards())

    def build(self, input_shape: Any) -> None:
        """Does nothing: a model with inputs and outputs already has its weights.

        Args:
            input_shape: ignored.
        """

    def _check_recorded_stages(self) -> None:
        if not self._has_recorded_stages():
            name = next((node.layer.name for node in self._network().nodes), "the model")
            raise ValueError(
                "All layers of a pipelined model must have an associated pipeline stage. However, "
                f"{name} has not been assigned to one. Make or call it in a PipelineStage."
            )
        if sdk.current() < _ANY_ORDER_OF_STAGES_SINCE:
            self._check_running_order()
        super()._check_recorded_stages()

    def _check_running_order(self) -> None:
        """Checks that each call is in the stage of the call before it, in the order of Keras, or in a later one."""
        network = self._network()
        last = 0
        for number, step in enumerate(self._layer_steps(network, None), len(network.inputs)):
            stage = last if step.stage is None else step.stage
            if stage < last:
                raise ValueError(
                    f"Post order execution node #{number} has stage {stage}, but the node before it has stage {last}: "
                    f"it is a call of layer {step.name}. Expected stages that never go down in the order in which "
                    "Keras runs the layers. Call the layer in that stage or a later one, or emulate SDK 2.1, where any "
                    "order will do."
                )
            last = stage

    def _input_count(self) -> int:
        return len(nest.flatten(self.inputs))  # type: ignore[attr-defined]


class PipelineSequentialMethods(Pipelined, SequentialExtension):
    """A chain of layers, given stage by stage.

    Args:
        stages: a list for each pipeline stage, of its layers.
        gradient_accumulation_count: mini-batches for each update of the weights; SDKs up to 1.3: `pipeline_depth`.
        gradient_accumulation_dtype: see `PipelineModel`, also for the arguments below.
        batch_serialization_iterations: mini-batches that a stage works through one after another.
        device_mapping: the IPU of each stage; stage i on IPU i when left out.
        pipeline_schedule: a `PipelineSchedule`; `Grouped` when left out.
        recomputation_mode: a `RecomputationMode`. Results do not depend on it.
        forward_propagation_stages_poplar_options: the Poplar options of each forward stage.
        backward_propagation_stages_poplar_options: the Poplar options of each backward stage.
        weight_update_poplar_options: the Poplar options of the weight update.
        offload_weight_update_variables: which memory of the real device holds optimizer state. Results do not depend on
            it.
        replicated_optimizer_state_sharding: see `pipelining_ops.pipeline`.
        offload_activations: which memory of the real device holds activations. Results do not depend on it.
        offload_gradient_accumulation_buffers: which memory of the real device holds sums. Results do not depend on it.
        replicated_weight_sharding: see `pipelining_ops.pipeline`.
        offload_weights: which memory of the real device holds weights. Results do not depend on it.
        layer_replacement: whether to replace Keras' layers by layers of `ipu.keras.layers`, if they exist.
        **kwargs: `name`.

    Raises:
        TypeError: the count is missing.
        ValueError: `stages` is not a list of lists of layers, or a list is empty.
        RuntimeError: SDK 2.2 to 2.5 is emulated.

    Source: `tensorflow.python.ipu.keras.pipeline.PipelineSequential`; SDK 1.3 and 1.4: `SequentialPipelineModel`.

    Example:
        >>> layers = tf.keras.layers
        >>> with strategy.scope():
        ...     model = ipu.keras.PipelineSequential(
        ...         [[layers.Dense(8)], [layers.ReLU(), layers.Softmax()]], gradient_accumulation_count=8)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes a model of the class for the Keras package of the layers."""
        refuse_deleted(cls.__name__, "Sequential")
        stages = args[0] if args else kwargs.get("stages")
        kind = dispatched(cls, PipelineSequentialMethods, SEQUENTIAL, stages)
        return super().__new__(cls, *args, **kwargs) if kind is cls else kind(*args, **kwargs)

    def __init__(
        self,
        stages: Sequence[Sequence[Any]],
        gradient_accumulation_count: int | None = None,
        gradient_accumulation_dtype: Any = None,
        batch_serialization_iterations: int = 1,
        device_mapping: Sequence[int] | None = None,
        pipeline_schedule: Any = None,
        recomputation_mode: Any = None,
        forward_propagation_stages_poplar_options: Any = None,
        backward_propagation_stages_poplar_options: Any = None,
        weight_update_poplar_options: Any = None,
        offload_weight_update_variables: bool | None = None,
        replicated_optimizer_state_sharding: bool = False,
        offload_activations: bool | None = None,
        offload_gradient_accumulation_buffers: bool | None = None,
        replicated_weight_sharding: bool | None = None,
        offload_weights: bool | None = None,
        layer_replacement: bool = False,
        **kwargs: Any,
    ) -> None:
        options = {name: value for name, value in locals().items() if name in OPTIONS}
        _check_stages(stages, keras_package(self))
        older = {name: kwargs.pop(name, None) for name in OLDER_COUNTS}
        if layer_replacement:
            replacer = IPULayerReplacer()
            stages = [[replacer(layer) for layer in stage] for stage in stages]
        super().__init__([layer for stage in stages for layer in stage], **kwargs)  # type: ignore[call-arg]
        remember(self, stages=[list(stage) for stage in stages])
        self._remember_pipeline(gradient_accumulation_count, older, options)

    stages: list[list[Any]]

    def _make_staged_model(self, infeed: Any) -> StagedModel:
        steps: list[stage_plan.PipelineLayerStep] = []
        first: stage_plan.Key = ("input",)
        input_key = first
        for stage, layers in enumerate(self.stages):
            for layer in layers:
                result: stage_plan.Key = (len(steps),)
                steps.append(stage_plan.layer_step(layer, input_key, result))
                steps[-1].stage = stage
                input_key = result
        return StagedModel(self, steps, [first], [input_key], lambda x: list(nest.flatten(x)), 0)


def _check_stages(stages: Any, package: str) -> None:
    if not isinstance(stages, list) or not stages:
        raise ValueError(
            f"An IPU pipeline must take a non-empty list of stages, where each stage is a list of Keras Layers. It was "
            f"given {stages!r}. Pass a list of lists of layers."
        )
    for index, stage in enumerate(stages):
        if not isinstance(stage, list):
            raise ValueError(
                f"An IPU pipeline may only contain lists of stages, where each stage is a list of Keras Layers. Stage "
                f"{index} is {stage!r}. Pass a list of layers for that stage."
            )
        check_layers(stage, package, "Each list in the `stages` list must contain only Keras Layers")
        if not stage:
            raise ValueError(
                f"Pipeline stage {index} has no layer; expected at least one. Add a layer, or leave the "
                "stage out of `stages`."
            )


def _pipeline_class(methods: type, stock_name: str, name: str) -> Any:
    return keras_packages.class_over(methods, stock_name, name, keras2.root(), __name__)


PipelineModel = _pipeline_class(PipelineModelMethods, FUNCTIONAL, "PipelineModel")
PipelineSequential = _pipeline_class(PipelineSequentialMethods, SEQUENTIAL, "PipelineSequential")
SequentialPipelineModel = PipelineSequential  # its name in SDK 1.3 and 1.4, and a deprecated alias up to 2.3


class PipelinedModel:
    """The name of `PipelineSequential` in SDK 1.2; makes one.

    Args:
        *args: arguments of `PipelineSequential`.
        **kwargs: keyword arguments of `PipelineSequential`.

    Raises:
        NotImplementedError: SDK 1.3 or 1.4 is emulated, which refuse it by name.

    Source: `tensorflow.python.ipu.keras.pipeline.PipelinedModel`.

    Example:
        >>> with strategy.scope():
        ...     model = PipelinedModel([[tf.keras.layers.Dense(8)], [tf.keras.layers.Softmax()]], pipeline_depth=8)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        first, past = _PIPELINED_MODEL_REFUSED
        if first <= sdk.current() < past:
            raise NotImplementedError(
                "PipelinedModel is no longer used. For pipelining use SequentialPipelineModel or PipelineModel. Use "
                "one of these two."
            )
        return PipelineSequential(*args, **kwargs)
