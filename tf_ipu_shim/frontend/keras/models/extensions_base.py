"""`keras.ipu.extensions.extensions_base`: the base class of Keras models created in an `IPUStrategy` scope."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

from tf_ipu_shim import keras2, sdk
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.keras.models import untraced_losses
from tf_ipu_shim.frontend.keras.options import replication, saved_options
from tf_ipu_shim.frontend.keras.options.option_setters import OptionSetters
from tf_ipu_shim.frontend.keras.options.options import ModelOptions
from tf_ipu_shim.frontend.keras.options.replication import ReplicatedMetricReductionMethod
from tf_ipu_shim.frontend.keras.training import locks, loop, loss_scales, model_step, partial_batches, programs
from tf_ipu_shim.frontend.keras.training.data_adapter import IPUDataHandler
from tf_ipu_shim.frontend.keras.training.data_feed_manager import InfeedManager, OutfeedManager
from tf_ipu_shim.frontend.keras.training.on_batch import OnBatchMethods
from tf_ipu_shim.frontend.keras.training.traced_program import TracedProgram
from tf_ipu_shim.frontend.pipelines.pipelining_ops import PipelineSchedule
from tf_ipu_shim.frontend.strategies import delegation
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.graphs import ops

logged_steps_per_execution_warning = False
_REPLICAS_IN_ERROR_UNTIL = (2, 4)


class ModelState:
    """The IPU state of a model: options, queues, programs, stages. Never saved with the model."""

    def __init__(self) -> None:
        self.options = ModelOptions()
        self.infeeds = InfeedManager()
        self.outfeeds = OutfeedManager()
        self.programs: dict[Any, TracedProgram] = {}
        self.locks = locks.ModelLocks()
        self.stages: list[Any] | None = None  # assignments that were set
        self.stages_reset = False  # whether layers' own stages no longer count
        self.input_shape: Any = None  # of a subclassed model that was built
        self.seen = False  # whether a subclassed model's code was traced, which enters stages or does not
        self.network: Any = None  # the graph of a subclassed model, once it is known
        self.added_in_call: set[str] = set()  # methods by which its `call` adds losses and metrics

    def forget_programs(self) -> None:
        """Drops compiled programs and queues, so that the next call recompiles."""
        self.programs.clear()
        self.infeeds.reset()
        self.outfeeds.reset()


class KerasExtensionBase(OptionSetters, OnBatchMethods, delegation.KerasExtension):
    """The methods that a Keras model created in the scope of an `IPUStrategy` has in addition.

    Mixed in between the user's class and Keras': a user's overrides come first, and may call these by `super()`.

    Source: `keras.ipu.extensions.extensions_base.KerasExtensionBase`.
    """

    @property
    def _ipu(self) -> ModelState:
        state = vars(self).get("_ipu_state")
        if state is None:
            # Past Keras' tracking of attributes; one of several threads makes it.
            state = vars(self).setdefault("_ipu_state", ModelState())
        return state

    def _get_config_delegate(self) -> dict[str, Any]:
        """Returns a model's configuration without the entries of a registered extension."""
        return self._own_config()

    def _own_config(self) -> dict[str, Any]:
        """Returns the configuration from Keras' own `get_config`."""
        model: Any = self
        return model.get_config()  # type: ignore[no-any-return]

    def _deserialize_from_config_supported(self, config: dict[str, Any]) -> bool:
        return True

    def _deserialize_from_config_delegate(self, config: dict[str, Any]) -> None:
        """Restores the accumulation and pipelining options from an earlier model's configuration."""
        if config.get(saved_options.ENTRY) is not None:
            saved_options.restore_options(self, config[saved_options.ENTRY])

    def _reset_compile_cache(self) -> None:
        """Replaces part of Keras' `compile`, which must stay Keras' own: loading a model checks that."""
        self._ipu.forget_programs()
        super()._reset_compile_cache()  # type: ignore[misc]

    def _validate_target_and_loss(self, y: Any, loss: Any) -> None:
        """Replaces part of Keras' `train_step`: as in Keras 2.6, targets may be missing if `add_loss` adds a loss."""
        model: Any = self
        if y is not None or not any(
            keras_members.layer_losses(layer) or keras_members.eager_losses(layer)
            for layer in keras_members.flatten_layers(model)
        ):
            super()._validate_target_and_loss(y, loss)  # type: ignore[misc]

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """Trains on the IPU; the arguments of `tf.keras.Model.fit`.

        Returns:
            The history, with one entry an epoch.

        Raises:
            RuntimeError: the model is not compiled, or cannot be run so.
            ValueError: the data cannot be fed to a compiled program.
        """
        model: Any = self
        self._check_mode("fit")
        _note_queues(max_queue_size, workers, use_multiprocessing)
        package = model_step.keras_package(model)
        adapters = keras2.module("engine.data_adapter", package)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = adapters.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        trainable_state = keras2.module("engine.training_utils", package).RespectCompiledTrainableState
        with model.distribute_strategy.scope(), trainable_state(model):
            handler = self._make_data_handler(
                "fit",
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps_per_epoch,
                initial_epoch=initial_epoch,
                epochs=epochs,
                shuffle=shuffle,
                class_weight=class_weight,
            )
            listed = loop.callback_list(model, callbacks, package, verbose, epochs, handler.inferred_steps)
            partial_batches.warn_dropped_batches("fit", handler, listed)
            validate = None
            if validation_data:
                validate = self._make_validation(
                    validation_data, validation_batch_size or batch_size, validation_steps, validation_freq, listed
                )
            return loop.fit(model, handler, listed, validate)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Computes loss and metrics on the IPU; the arguments of `tf.keras.Model.evaluate`.

        `steps` are mini-batches of all replicas together.

        Returns:
            The loss, or a list of loss and metrics, or a dictionary of them.

        Raises:
            RuntimeError: the model is not compiled, or cannot be run so.
            ValueError: the data cannot be fed to a compiled program.
        """
        model: Any = self
        self._check_mode("evaluate")
        _note_queues(max_queue_size, workers, use_multiprocessing)
        if kwargs:
            raise TypeError(f"Invalid keyword arguments: {list(kwargs)}. Remove them, or correct their names.")
        with model.distribute_strategy.scope():
            handler = self._make_data_handler(
                "evaluate", x=x, y=y, sample_weight=sample_weight, batch_size=batch_size, steps_per_epoch=steps
            )
            package = model_step.keras_package(model)
            listed = loop.callback_list(model, callbacks, package, verbose, 1, handler.inferred_steps)
            partial_batches.warn_dropped_batches("evaluate", handler, listed)
            with self._ipu.locks.hold_for_evaluate(model):
                logs = loop.evaluate(model, handler, listed)
            return logs if return_dict else loop.order_metrics(logs, model.metrics_names)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Any:
        """Computes predictions on the IPU; the arguments of `tf.keras.Model.predict`.

        `steps` are mini-batches of all replicas together.

        Returns:
            Arrays of shape [samples, ...], in the structure of the model's outputs.

        Raises:
            RuntimeError: the model cannot be run so.
            ValueError: the data cannot be fed to a compiled program.
        """
        model: Any = self
        self._check_mode("predict")
        _note_queues(max_queue_size, workers, use_multiprocessing)
        with model.distribute_strategy.scope():
            handler = self._make_data_handler("predict", x=x, batch_size=batch_size, steps_per_epoch=steps)
            package = model_step.keras_package(model)
            listed = loop.callback_list(model, callbacks, package, verbose, 1, handler.inferred_steps)
            return loop.predict(model, handler, listed)

    def get_pipeline_stage_assignment(self) -> Any:
        """Returns the pipeline stage of each layer; each kind of model overrides it."""
        raise NotImplementedError

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: Any) -> None:
        """Sets the pipeline stage of each layer; each kind of model overrides it."""
        raise NotImplementedError

    def reset_pipeline_stage_assignment(self) -> None:
        """Removes the layers from their pipeline stages; each kind of model overrides it."""
        raise NotImplementedError

    def print_pipeline_stage_assignment_summary(self, line_length: int | None = None, print_fn: Any = None) -> None:
        """Prints the pipeline stage of each layer; each kind of model overrides it."""
        raise NotImplementedError

    def _has_layer_graph(self) -> bool:
        """Returns whether the graph of the model's layers is known, so that they can be in stages."""
        return False

    def _is_pipelined(self) -> bool:
        return False

    def _shards(self) -> int:
        """The number of IPUs of one replica."""
        return 1

    def _stages_need_trace(self, mode: str) -> bool:
        """Returns whether only a traced program shows if the model has stages, and how many replicas it has."""
        return False

    def _find_stages_by_scratch_trace(self, spec: Any, step: str) -> None:
        """Works like `_find_stages`, by a trace of the model that never runs."""

    def _find_stages(self, spec: Any, step: str = "") -> None:
        """Looks for stages in the model's own `call`, if it has one and must be in some."""

    def _check_traced_stages(self, mode: str, spec: Any, before: int) -> None:
        """Checks the traced stages before the program runs."""

    def _check_trace(self, mode: str, spec: Any, concrete: Any, before: int) -> None:
        """Checks a traced program (`concrete`): its stages, and that it contains the losses that layers add."""
        if mode != "predict" and not model_step.overrides_method(self, programs.STEP_METHODS[mode]):
            untraced_losses.check_losses(concrete)
        if mode == "fit":
            loss_scales.warn_if_they_only_grow(self, self._device())
        self._check_traced_stages(mode, spec, before)

    def _accumulates_outfeed(self, mode: str) -> bool:
        """Returns whether metrics of mini-batches are summed before they are sent."""
        return False

    def _result_unpacker(self, mode: str) -> Callable[[Any], Any]:
        """Returns a function that turns outfeed elements into metrics or predictions."""
        return lambda values: values

    def _device(self) -> str:
        model: Any = self
        return model.distribute_strategy.extended.worker_devices[0]

    def _check_mode(self, mode: str) -> None:
        model: Any = self
        if ops.inside_function():
            raise RuntimeError(
                "Detected a call to a Keras model's method that trains, evaluates or predicts inside a "
                f"`tf.function`. Such a method ({mode}, or its form for one batch) can only be called "
                "outside, because it creates functions. Move the call out of the tf.function."
            )
        if not ops.executing_eagerly_outside_functions():
            raise RuntimeError(
                f"Keras' {mode} does not run on IPUs in a graph of TensorFlow 1. Run the script without `--tf1`, "
                "disable_v2_behavior() and disable_eager_execution(). Or write the loop with ipu_compiler.compile, "
                "loops.repeat and an IPUInfeedQueue, inside an ipu_scope."
            )
        if model.run_eagerly:
            raise RuntimeError(
                "Keras models cannot run eagerly when using `IPUStrategy`: eager running was requested. "
                "Leave out run_eagerly=True in compile, and tf.config.run_functions_eagerly(True)."
            )
        if mode != "predict":
            keras_members.assert_compile_was_called(model)

    def _replicas(self) -> int:
        return replication.replication_factor(self._device(), self._shards(), self._ipu.options.device_mapping)

    def _steps_per_execution_value(self) -> int:
        steps = getattr(self, "_steps_per_execution", None)
        return 1 if steps is None else int(steps.numpy())

    def _make_data_handler(self, mode: str, steps_per_execution: int | None = None, **data: Any) -> IPUDataHandler:
        steps = steps_per_execution or self._steps_per_execution_value()
        with ops.device("/device:CPU:0"):
            handler = IPUDataHandler(
                model=self,
                steps_per_execution=steps,
                replication_factor=None,
                **data,
            )
        if mode == "predict":
            handler.enable_padding()
        with locks.build_lock.hold():
            self._find_stages(handler.element_spec, programs.STEP_METHODS[mode])
            if self._stages_need_trace(mode) and not handler.divides_evenly(self._replicas()):
                self._find_stages_by_scratch_trace(handler.element_spec, programs.STEP_METHODS[mode])
        replicas = self._replicas()
        if steps_per_execution is None:
            handler.split_execution(replicas)
        with ops.device("/device:CPU:0"):
            handler.set_replication_factor(replicas)
        if mode == "fit":
            self._check_accumulation(handler.steps_per_execution_value)
        return handler

    def _accumulation(self) -> int:
        """Mini-batches for each update."""
        chosen = self._ipu.options
        if not self._is_pipelined():
            return chosen.accumulation_steps or 1
        if chosen.pipelining_steps is None:
            if chosen.pipelining_kwargs.get("pipeline_schedule") is PipelineSchedule.Sequential:
                return 1
            raise ValueError(
                "The model which you are attempting to train is pipelined, however "
                "`gradient_accumulation_steps_per_replica` hasn't been set; pipelines need it. Set it with "
                "`set_pipelining_options()`."
            )
        return chosen.pipelining_steps

    def _check_accumulation(self, steps: int) -> None:
        mini_batches = self._accumulation()
        if steps % mini_batches:
            divisor = f"`gradient_accumulation_steps_per_replica` ({mini_batches})"
            if sdk.current() <= _REPLICAS_IN_ERROR_UNTIL and (replicas := self._replicas()) == 1:
                divisor = (
                    "`gradient_accumulation_steps_per_replica * number of replicas` "
                    f"(`gradient_accumulation_steps_per_replica` is set to {mini_batches} and there are "
                    f"{replicas} replicas)"
                )
            setter = "set_pipelining_options" if self._is_pipelined() else "set_gradient_accumulation_options"
            raise RuntimeError(
                f"The {'pipelined ' if self._is_pipelined() else ''}model has been configured to use gradient "
                f"accumulation for training, however the current `steps_per_execution` value (set to {steps}) is not "
                f"divisible by {divisor}. Change one of them: "
                f"`compile(steps_per_execution=...)` or `{setter}()`."
            )

    def _trace_finds_stages(self, program: TracedProgram, handler: IPUDataHandler, callbacks: Any) -> bool:
        """Traces a program; if it enters stages, fewer replicas share the data and the program is built again."""
        program.trace()
        if not self._is_pipelined():
            return False
        with ops.device("/device:CPU:0"):
            handler.set_replication_factor(self._replicas())
        if callbacks is not None:
            callbacks.set_params({**callbacks.params, "steps": handler.inferred_steps})
        return True

    def _get_program(self, mode: str, infeed: Any, outfeed: Any, steps: int, replicas: int) -> TracedProgram:
        """Returns the program of a mode, queues, steps and replicas; no other thread makes one meanwhile."""
        key = (mode, infeed._id, outfeed._id, steps, replicas)
        program = self._ipu.programs.get(key)
        if program is not None:
            return program
        make = f"make_{'train' if mode == 'fit' else 'test' if mode == 'evaluate' else 'predict'}_function"
        programs.check_not_overridden(self, (make,), "with IPU extensions: override the step function instead")
        with locks.build_lock.hold():
            if key not in self._ipu.programs:
                self._ipu.programs[key] = TracedProgram(
                    self._build_program(mode, infeed, outfeed, steps),
                    functools.partial(self._check_trace, mode, infeed._structure),
                    lambda: self._ipu.programs.pop(key, None),
                )
            return self._ipu.programs[key]

    def _build_program(self, mode: str, infeed: Any, outfeed: Any, steps: int) -> Callable[[], None]:
        if mode == "fit" and self._accumulation() > 1:
            why = "when using gradient accumulation"
            programs.check_not_overridden(self, ("train_step",), why)
            programs.check_no_custom_minimize(cast(Any, self).optimizer)
            return programs.make_accumulating_program(self, infeed, outfeed, steps, self._ipu.options)
        return programs.make_loop_program(self, mode, infeed, outfeed, steps)

    def _make_validation(
        self, data: Any, batch_size: int | None, steps: int | None, frequency: Any, callbacks: Any
    ) -> Callable[[int], dict[str, Any]]:
        model: Any = self
        x, y, weights = model_step.unpack_element(model, data)

        def validate(epoch: int) -> dict[str, Any]:
            if not keras_members.should_eval(model, epoch, frequency):
                return {}
            try:
                logs = model.evaluate(
                    x=x,
                    y=y,
                    sample_weight=weights,
                    batch_size=batch_size,
                    steps=steps,
                    callbacks=callbacks,
                    return_dict=True,
                )
            except ValueError as error:
                error.args = (f"{error} It was raised by the validation in fit.", *error.args[1:])
                raise
            return {f"val_{name}": value for name, value in logs.items()}

        return validate


__all__ = ["KerasExtensionBase", "ModelState", "ReplicatedMetricReductionMethod", "logged_steps_per_execution_warning"]


def _note_queues(max_queue_size: int, workers: int, use_multiprocessing: bool) -> None:
    """Records arguments for Keras' own queues, which do not exist here."""
    note_arguments("Model.fit", max_queue_size=max_queue_size, workers=workers, use_multiprocessing=use_multiprocessing)
