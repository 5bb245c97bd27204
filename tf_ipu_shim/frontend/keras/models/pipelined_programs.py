"""Builds the compiled training, evaluation and prediction programs of a pipelined model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.compat.v2 import errors as errors_impl
from tensorflow.compat.v2 import nest

from tf_ipu_shim.frontend.gradients import backprop
from tf_ipu_shim.frontend.keras.options.options import ModelOptions
from tf_ipu_shim.frontend.keras.stages import stage_plan
from tf_ipu_shim.frontend.keras.stages.stage_plan import Key, PipelineLayerStep
from tf_ipu_shim.frontend.keras.training import model_step, programs, variable_creation
from tf_ipu_shim.frontend.pipelines import pipelining_ops
from tf_ipu_shim.frontend.pipelines.arguments import AccumulatedOutfeed, PipelineArguments
from tf_ipu_shim.frontend.pipelines.build import build_pipeline
from tf_ipu_shim.frontend.pipelines.options import PipelineSchedule, mini_batch_multiple
from tf_ipu_shim.tf_private import keras_members


class StagedModel:
    """A model cut into stages.

    Args:
        model: the Keras model.
        steps: the steps of its layers, in stages.
        inputs: names of the model's inputs.
        outputs: names of its outputs.
        bind: a function from the inputs of a call to a tensor for each name.
        structure: the structure of the model's outputs.
    """

    def __init__(
        self,
        model: Any,
        steps: Sequence[PipelineLayerStep],
        inputs: list[Key],
        outputs: list[Key],
        bind: Callable[[Any], list[Any]],
        structure: Any,
    ) -> None:
        self.model = model
        self.steps = steps
        self.stages = stage_plan.check_steps(steps)
        self._inputs = inputs
        self._outputs = outputs
        self._bind = bind
        self.structure = structure

    def functions(self, infeed: Any, training: bool, finish: Callable[..., Any]) -> list[Callable[..., Any]]:
        """Returns a function for each stage."""
        aside: list[Any] = []  # structure of what only the last stage needs; its tensors go through all stages

        def stage(stage_index: int) -> Callable[..., Any]:
            def run(*values: Any, **keywords: Any) -> Any:
                with variable_creation.variable_creation_scope():
                    return run_layers(values, keywords)

            def run_layers(values: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
                if stage_index == 0:
                    keras_members.clear_losses(self.model)
                    x, y, weights = model_step.unpack_element(
                        self.model, programs.pack_element(infeed, values, keywords)
                    )
                    tensors = dict(zip(self._inputs, self._bind_inputs(x)))
                    aside[:] = [(y, weights)]
                    targets = [value for value in nest.flatten((y, weights)) if value is not None]
                else:
                    names = stage_plan.tensors_needed_after(self.steps, stage_index - 1, self._outputs)
                    tensors = dict(zip(names, values))
                    targets = list(values[len(names) :])
                with model_step.call_context(self.model, list(tensors.values()), training):
                    for step in self.steps:
                        if step.stage == stage_index:
                            step.run(tensors)
                if stage_index < self.stages - 1:
                    names = stage_plan.tensors_needed_after(self.steps, stage_index, self._outputs)
                    return [*(tensors[name] for name in names), *targets]
                remaining = iter(targets)
                y, weights = nest.map_structure(lambda value: None if value is None else next(remaining), aside[0])
                predicted = nest.pack_sequence_as(self.structure, [tensors[name] for name in self._outputs])
                return finish(None, y, weights, predicted)

            return run

        return [stage(stage_index) for stage_index in range(self.stages)]

    def _bind_inputs(self, x: Any) -> list[Any]:
        """Returns the tensors of an element, one for each input of the model."""
        bound = self._bind(x)
        if len(bound) != len(self._inputs):
            raise ValueError(
                f"ValueError: Layer {self.model.name} expects {len(self._inputs)} input(s), but it received "
                f"{len(bound)} input tensors. Inputs received: {bound}. Pass a dataset whose elements have a tensor "
                "for each input."
            )
        return bound


def pipelined_program(
    staged: StagedModel, mode: str, infeed: Any, outfeed: Any, steps: int, options: ModelOptions
) -> Callable[[], None]:
    """Returns a program that runs a pipelined model."""
    model = staged.model
    training = mode == "fit"
    serialised = options.pipelining_kwargs.get("batch_serialization_iterations", 1)
    mini_batches = (options.pipelining_steps or 1) if training else steps // serialised
    _check_accumulation_count(options, staged.stages, training, mini_batches)
    if options.device_mapping is not None or serialised == 1:
        stage_plan.refuse_weights_on_several_ipus(staged.steps, options.device_mapping or range(staged.stages))
    accumulated = bool(options.accumulate_outfeed) and mode != "predict"

    def finish(x: Any, y: Any, weights: Any, predicted: Any) -> list[Any]:
        if mode == "predict":
            return list(nest.flatten(predicted))
        loss = model_step.compute_loss(model, x, y, predicted, weights)
        scaled = [model_step.scale_loss(model.optimizer, loss)] if training else []
        return [*scaled, model_step.update_metrics(model, x, y, predicted, weights)]

    def optimizer_function(loss: Any, *_: Any) -> Any:
        return pipelining_ops.OptimizerFunctionOutput(
            _UnscalingOptimizer(model.optimizer),
            loss,
            variables=list(model.trainable_variables),
            gradient_capture_context=backprop.GradientCaptureContext(),
        )

    def program() -> None:
        keywords: dict[str, Any] = dict(options.pipelining_kwargs)
        if training:
            keywords.update(optimizer_function=optimizer_function, outfeed_mask=[True, False])
            keywords["reduction_method"] = options.pipelining_reduction
        if accumulated:
            keywords["accumulate_outfeed"] = AccumulatedOutfeed.LAST
        with programs.replica_context(model):
            arguments = PipelineArguments(
                computational_stages=staged.functions(infeed, training, finish),
                gradient_accumulation_count=mini_batches,
                repeat_count=steps // (mini_batches * serialised),
                inputs=[],
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                device_mapping=options.device_mapping,
                name=model.name,
                shared_variables=True,
                **keywords,
            )
            build_pipeline(arguments)
            programs.count_mini_batches(model, mode, steps)

    return programs.compile_program(program, mode)


def _check_accumulation_count(options: ModelOptions, stages: int, training: bool, count: int) -> None:
    """Checks the accumulation count, with an error in Keras' terms."""
    schedule = options.pipelining_kwargs.get("pipeline_schedule")
    if schedule is None and options.pipelining_kwargs.get("batch_serialization_iterations", 1) == 1:
        schedule = PipelineSchedule.Grouped
    if not isinstance(schedule, PipelineSchedule):
        return
    multiple = mini_batch_multiple(schedule, stages, training)
    if count % multiple == 0:
        return
    where = (
        "`gradient_accumulation_steps_per_replica` of set_pipelining_options()"
        if training
        else "`steps_per_execution` of compile()"
    )
    raise errors_impl.FailedPreconditionError(
        None,
        None,
        f"The number of iterations of the pipeline must be a multiple of {multiple}, but it is {count}. It is "
        f"{where}: change that, or use PipelineSchedule.Sequential, which takes any.",
    )


class _UnscalingOptimizer:
    """A Keras optimizer as the pipeline calls it: gradients are unscaled if the loss was scaled."""

    def __init__(self, optimizer: Any) -> None:
        self._keras_optimizer = optimizer
        self.supports_captured_grads = model_step.accepts_captured_gradients(optimizer)
        self.own_gradients = model_step.optimizer_gradients(optimizer)

    def get_config(self) -> dict[str, Any]:
        """Returns the optimizer's."""
        return self._keras_optimizer.get_config()

    def apply_gradients(self, pairs: Any, **kwargs: Any) -> Any:
        """Updates the variables."""
        pairs = model_step.unscale_gradients(self._keras_optimizer, list(pairs))
        return programs.to_operation(self._keras_optimizer.apply_gradients(pairs, **kwargs))


def staged_network(model: Any, network: Any, steps: list[PipelineLayerStep], path: Key) -> StagedModel:
    """Returns a model with a graph, in stages."""
    from tf_ipu_shim.frontend.keras.models import networks

    def bind(x: Any) -> list[Any]:
        if not networks.is_functional(model):
            return nest.flatten(x)
        flat = keras_members.flatten_to_reference_inputs(model, x)
        return [
            keras_members.conform_to_reference_input(model, t, reference) for t, reference in zip(flat, model.inputs)
        ]

    return StagedModel(
        model,
        steps,
        networks.tensor_keys(network.inputs, path),
        networks.tensor_keys(network.outputs, path),
        bind,
        network.structure,
    )
