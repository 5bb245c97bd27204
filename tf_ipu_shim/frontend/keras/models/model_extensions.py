"""`keras.ipu.extensions.model_extensions`: finds pipeline stages of subclassed models by a symbolic call."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, cast

from tensorflow.compat.v2 import errors as errors_impl
from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2
from tf_ipu_shim.errors import UnsupportedError
from tf_ipu_shim.frontend.keras.models import networks
from tf_ipu_shim.frontend.keras.models.network_extension import NetworkExtension
from tf_ipu_shim.frontend.keras.options import replication, saved_options
from tf_ipu_shim.frontend.keras.stages import assignments, stage_scopes
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import (
    ModelLayerPipelineStageAssignment,
    NestedModelPipelineStageAssignment,
    entered_stages,
    stage_of,
)
from tf_ipu_shim.frontend.keras.training import model_step, programs, variable_creation
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.autograph import ag_ctx
from tf_ipu_shim.tf_private.autograph import api as autograph
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.tensors import tensor_shape, tensor_spec


class ModelExtension(NetworkExtension):
    """IPU extension of subclassed models.

    The stages come from `PipelineStage` scopes in the model's own `call`, or are set once the model is built.

    Source: `keras.ipu.extensions.model_extensions.ModelExtension`.

    Example:
        >>> class Small(tf.keras.Model):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.dense = tf.keras.layers.Dense(4, name="only")
        ...     def call(self, x):
        ...         return self.dense(x)
        >>> with strategy.scope():
        ...     model = Small()
        ...     model.build((8, 784))
        ...     [assignment.layer.name for assignment in model.get_pipeline_stage_assignment()]
        ['only']
    """

    _layer_kind = ModelLayerPipelineStageAssignment
    _nested_kind = NestedModelPipelineStageAssignment

    def _wording(self) -> assignments.Wording:
        return assignments.current_wording(subclassed=True)

    def build(self, input_shape: Any) -> None:
        """Works like Keras'; the model's graph is then known, and stages that were set for another one are forgotten.

        Args:
            input_shape: a shape, or a structure of shapes; Keras tensors of `Input` have the types as well.

        Raises:
            ValueError: some of the layers are in a pipeline stage, and others are in none; or the shape is missing or
                incomplete.
            NotImplementedError: the model's class has no `call`.
        """
        if input_shape is None or networks.is_functional(self):
            super().build(input_shape)  # type: ignore[misc]
            return
        self._check_call()
        before = entered_stages()
        flat = nest.flatten(input_shape)
        if flat and all(hasattr(tensor, "dtype") for tensor in flat):
            spec = nest.map_structure(lambda tensor: tensor_spec.TensorSpec(tensor.shape, tensor.dtype), input_shape)
            # Keras would call the model with tensors of float32 first.
            self._trace(None, spec)
            keras2.module("engine.base_layer", model_step.keras_package(self)).Layer.build(self, _shapes(input_shape))
        elif not self._build_of_layers(input_shape):
            self._build_from_shapes(input_shape)
            self._ipu.network, self._ipu.input_shape = None, input_shape
        stages = self._ipu.stages
        if stages is not None and len(stages) != len(self._network().nodes):
            self._ipu.stages = None
            self._ipu.forget_programs()
        if self._ipu.stages is None and not self._ipu.stages_reset and self._uses_stage_scopes(before):
            self._check_recorded_stages()

    # Keras calls a `build` that is not its own before the first call, with shapes that need not be all it takes.
    keras_members.mark_default(build)

    def save_spec(self, dynamic_batch: bool = True) -> Any:
        """Works like Keras'; a model that was built and has not run yet is saved with the inputs that it was built for.

        Args:
            dynamic_batch: whether the first dimension is left open.
        """
        model: Any = self
        if keras_members.saved_inputs_spec(model) is None and self._has_layer_graph():
            keras_members.set_save_spec(model, self._network().nested_inputs)
        return super().save_spec(dynamic_batch)  # type: ignore[misc]

    @property
    def _trackable_saved_model_saver(self) -> Any:
        """Keras' writer, with an entry in addition to the configuration, which the user's class has for itself."""
        saver = super()._trackable_saved_model_saver  # type: ignore[misc]
        keras_members.add_saved_property(saver, saved_options.ENTRY, lambda: saved_options.options_to_config(self))
        return saver

    def _restore_saved_options(self, entry: dict[str, Any]) -> None:
        """Restores the options that an earlier model saved."""
        model: Any = self
        if entry["stages"] is not None and not self._has_layer_graph():
            (inputs, *_), _ = model.save_spec(dynamic_batch=False)
            self._trace(None, inputs)
        saved_options.restore_options(self, entry)

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """Returns the pipeline stage of each call of a layer, in post-order; None if it has none.

        Raises:
            RuntimeError: the model is not built.
        """
        self._check_layer_graph("get")
        return super().get_pipeline_stage_assignment()

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: list[Any]) -> None:
        """Sets the pipeline stage of each call of a layer.

        Args:
            pipeline_stage_assignment: one for each call, in the order of `get_pipeline_stage_assignment`.

        Raises:
            RuntimeError: the model is not built.
            ValueError: they do not match the model, a stage is empty, or a layer precedes the source of its inputs.
        """
        self._check_layer_graph("set")
        super().set_pipeline_stage_assignment(pipeline_stage_assignment)

    def print_pipeline_stage_assignment_summary(self, line_length: int | None = None, print_fn: Any = None) -> None:
        """Prints the pipeline stage of each call of a layer.

        Args:
            line_length: characters of a line.
            print_fn: prints a line; `print` when left out.

        Raises:
            RuntimeError: the model is not built.
        """
        self._check_layer_graph("get")
        super().print_pipeline_stage_assignment_summary(line_length, print_fn)

    def _network(self) -> networks.Network:
        if networks.is_functional(self):  # a subclass that gives inputs and outputs to Model's constructor
            return networks.functional_network(self)
        if self._ipu.network is None:
            self._trace(self._ipu.input_shape, None)
        return self._ipu.network

    def _has_recorded_stages(self) -> bool:
        has_network = networks.is_functional(self) or self._ipu.network is not None
        return has_network and super()._has_recorded_stages()

    def _has_layer_graph(self) -> bool:
        return networks.is_functional(self) or self._ipu.network is not None or self._ipu.input_shape is not None

    def _uses_stage_scopes(self, before: int) -> bool:
        """Returns whether layers were made in stages, or the model's code has entered some since."""
        model: Any = self
        return entered_stages() != before or any(
            stage_of(layer) is not None for layer in keras_members.flatten_layers(model)
        )

    def _find_stages(self, spec: Any, step: str = "") -> None:
        if not self._is_uninspected() or not self._check_call(step):
            return
        if not step:
            self._find_stages_by_scratch_trace(spec, step)
        elif self._requires_stages() and not self._find_stages_symbolically(spec) and self._is_uninspected():
            self._find_stages_by_scratch_trace(spec, step)

    def _stages_need_trace(self, mode: str) -> bool:
        if mode == "fit" or not self._is_uninspected():  # stages without options for pipelines cannot train
            return False
        return self._check_call(programs.STEP_METHODS[mode]) and replication.num_ipus(self._device()) > 1

    def _is_uninspected(self) -> bool:
        return not networks.is_functional(self) and self._ipu.network is None and not self._ipu.seen

    def _requires_stages(self) -> bool:
        """Returns whether the model's options, layers or code define stages, or can."""
        chosen, model = self._ipu.options, cast(Any, self)
        if chosen.device_mapping or chosen.pipelining_steps is not None or chosen.pipelining_kwargs:
            return True
        if any(stage_of(layer) is not None for layer in keras_members.flatten_layers(model)):
            return True
        return stage_scopes.are_named_in(type(self))

    def _find_stages_symbolically(self, spec: Any) -> bool:
        """Searches for stages by a symbolic call with Keras tensors; returns whether it has any."""
        model: Any = self
        x, _, _ = model_step.unpack_element(model, spec)
        before = entered_stages()
        try:
            self._trace(None, x)
        except Exception:  # which another model than one in stages may raise; one in stages raises it again
            return False
        self._ipu.seen = True
        if not self._uses_stage_scopes(before):
            self._ipu.network = None
            return False
        keras2.module("engine.base_layer", model_step.keras_package(self)).Layer.build(self, _shapes(x))
        self._check_recorded_stages()
        return True

    def _find_stages_by_scratch_trace(self, spec: Any, step: str) -> None:
        model: Any = self
        self._ipu.seen = True
        x, _, _ = model_step.unpack_element(model, spec)
        before = entered_stages()

        def call_model(inputs: Any) -> None:
            tracing.mark_scratch(ops.get_default_graph())
            with programs.replica_context(model), variable_creation.variable_creation_scope():
                model(inputs, training=step == "train_step")

        def_function.function(call_model, autograph=False).get_concrete_function(x)
        if self._uses_stage_scopes(before):
            self._trace(None, x)
            self._check_recorded_stages()

    def _check_traced_stages(self, mode: str, spec: Any, before: int) -> None:
        if not self._is_uninspected():
            return
        self._ipu.seen = True
        if not self._uses_stage_scopes(before):
            return
        self._trace(None, model_step.unpack_element(self, spec)[0])
        self._ipu.forget_programs()
        self._check_recorded_stages()
        self._replicas()
        if mode == "fit":
            self._accumulation()
        if self._stage_count() > 1:
            return
        raise ValueError(
            f"The model {cast(Any, self).name} has one pipeline stage, and a pipeline needs at least two. Take "
            "`PipelineStage` out of `call`, or give the model more stages."
        )

    def _check_call(self, step: str = "") -> bool:
        """Returns whether the model has a `call`, unless its own step replaces it."""
        model: Any = self
        call = getattr(model.call, "__func__", model.call)  # a loaded one has a separate attribute
        if call is not keras2.module("engine.training", model_step.keras_package(model)).Model.call:
            return True
        if step and model_step.overrides_method(model, step):
            return False
        raise NotImplementedError(
            f"The function `call` for the model {model.name} has not been implemented: it says how the model's "
            f"outputs are computed. Define it{f', or `{step}`,' if step else ''} in the model's class, or make the "
            "model of inputs and outputs."
        )

    def _build_of_layers(self, input_shape: Any) -> bool:
        """Builds a model in stages by the call with Keras tensors that stages need; False: it needs another."""
        if not stage_scopes.are_named_in(type(self)):
            return False
        try:
            self._trace(input_shape, None)
        except Exception:  # which Keras' own call raises again, or another one
            return False
        keras2.module("engine.base_layer", model_step.keras_package(self)).Layer.build(self, input_shape)
        return True

    def _build_from_shapes(self, input_shape: Any) -> None:
        try:
            super().build(input_shape)  # type: ignore[misc]
        except ValueError as error:
            model: Any = self
            if not isinstance(error.__context__, (TypeError, errors_impl.InvalidArgumentError)):
                raise
            raise ValueError(
                f"You cannot pass a plain shape to `build` of the model {model.name}: called with float32 tensors of "
                f"the shape {input_shape} it fails, with {type(error.__context__).__name__}. Build it with tensors of "
                f"tf.keras.Input, which say the structure and the types as well, or call it. Keras says: {error}"
            ) from error

    def _trace(self, shapes: Any, spec: Any) -> None:
        model: Any = self
        package = model_step.keras_package(model)
        make = keras2.module("engine.input_layer", package).Input
        if spec is not None:
            inputs = nest.map_structure(lambda tensor: make(batch_shape=tensor.shape, dtype=tensor.dtype), spec)
        else:
            inputs = _map_shapes(lambda shape: make(batch_shape=shape), shapes)
        with model_step.call_context(model, inputs, None), self._record_additions():
            outputs = autograph.tf_convert(model.call, ag_ctx.control_status_ctx())(
                inputs, **_call_keywords(model.call)
            )
        self._ipu.network = networks.network_of(package, inputs, outputs)

    @contextlib.contextmanager
    def _record_additions(self) -> Iterator[None]:
        """Losses and metrics that `call` adds are not part of the graph of layers: notes them without adding any."""
        self._ipu.added_in_call = set()
        methods = ("add_loss", "add_metric")
        for name in methods:
            noted = functools.partial(self._ipu.added_in_call.add, name)
            object.__setattr__(self, name, lambda *_, noted=noted, **__: noted())  # past Keras' tracking
        try:
            yield
        finally:
            for name in methods:
                object.__delattr__(self, name)

    def _build_program(self, mode: str, infeed: Any, outfeed: Any, steps: int) -> Callable[[], None]:
        if self._ipu.added_in_call and mode != "predict" and self._is_pipelined():
            added = " and ".join(sorted(self._ipu.added_in_call))
            raise UnsupportedError(
                f"The `call` of the pipelined model {cast(Any, self).name} calls {added}; expected layers "
                "only, which its stages run in the place of `call`. Call it in the `call` of a layer."
            )
        return super()._build_program(mode, infeed, outfeed, steps)

    def _check_layer_graph(self, label: str) -> None:
        if not self._has_layer_graph():
            model: Any = self
            raise RuntimeError(
                f"Cannot {label} pipeline stage assignments for model `{model.name}` which has not been built yet: its "
                "layers are not known. Call model.build(input_shape) first."
            )


def _call_keywords(call: Any) -> dict[str, Any]:
    """Keyword arguments that a model's `call` needs in addition to its inputs."""
    training = inspect.signature(call).parameters.get("training")
    return {} if training is None or training.default is not training.empty else {"training": None}


def _shapes(tensors: Any) -> Any:
    return nest.map_structure(lambda tensor: tuple(tensor.shape), tensors)


def _map_shapes(function: Any, shapes: Any) -> Any:
    if isinstance(shapes, dict):
        return {name: _map_shapes(function, shape) for name, shape in shapes.items()}
    if isinstance(shapes, (list, tuple)) and shapes and not all(isinstance(size, (int, type(None))) for size in shapes):
        return type(shapes)(_map_shapes(function, shape) for shape in shapes)
    return function(tensor_shape.TensorShape(shapes).as_list())
