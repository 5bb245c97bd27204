"""Builds a model's compiled programs: each execution is a loop over mini-batches on the IPU.

`Function._omit_frequent_tracing_warning` checked on TensorFlow 2.15.1 and 2.21.0.

loop            Mini-batches run one after another on one IPU. The model's code is traced once, in the loop's body.
accumulation    Several mini-batches share one update. The program begins with a zero for each variable. The step of
                a model that is not built yet is traced first, as a function that the program calls.
priming         Variables are created before the program is traced, because it begins with a list of them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.compat.v2 import distribute as distribute_lib
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.errors import UnsupportedError
from tf_ipu_shim.frontend.control_flow import loops
from tf_ipu_shim.frontend.gradients import accumulators
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.keras.options.options import ModelOptions
from tf_ipu_shim.frontend.keras.training import model_step, variable_creation
from tf_ipu_shim.frontend.tracing import autograph, tracing
from tf_ipu_shim.tf_private import functions as tf_functions
from tf_ipu_shim.tf_private import keras_members, training
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2
from tf_ipu_shim.tf_private.training import optimizer as optimizer_v1

STEP_METHODS = {"fit": "train_step", "evaluate": "test_step", "predict": "predict_step"}


def create_variables(model: Any, mode: str, infeed: Any) -> None:
    """Makes the variables that a program begins with: the trained ones, and the optimizer's.

    A trace that never runs makes the layers' variables, if the model has not been called yet. An optimizer makes its
    slots
    eagerly: it would make them in a part of the program that is traced late.
    """
    if not _is_built(model):
        _build_layers(model, mode, infeed)
    if mode == "fit":
        _create_slots(model)


def _is_built(model: Any) -> bool:
    return model.built and all(layer.built for layer in keras_members.flatten_layers(model))


def _create_slots(model: Any) -> None:
    scope = ops.name_scope_v2(keras_members.optimizer_name(model.optimizer))
    with ops.init_scope(), model.distribute_strategy.scope():
        if hasattr(model.optimizer, "build"):
            model.optimizer.build(model.trainable_variables)
            return
        with scope:
            _ = model.optimizer.iterations
            _create_optimizer_weights(model.optimizer, model.trainable_variables)


def _build_layers(model: Any, mode: str, infeed: Any) -> None:
    traces = itertools.count()

    def step(data: Any) -> None:
        if next(traces):
            return  # TensorFlow traces once more without making variables, to have something to run
        tracing.mark_scratch(ops.get_default_graph())
        with replica_context(model), variable_creation.variable_creation_scope():
            if mode == "fit":
                model_step.forward_pass(model, data, training=True)
            else:
                model_step.convert_step(model, STEP_METHODS[mode])(data)

    def_function.function(step, autograph=False).get_concrete_function(infeed._structure)


def _create_optimizer_weights(optimizer: Any, variables: Sequence[Any]) -> None:
    """Creates the slots of an optimizer, and of wrapped ones: an optimizer that creates variables during tracing makes
    TensorFlow trace the program twice.
    """
    if isinstance(optimizer, optimizer_v1.Optimizer):
        training.create_slots(optimizer, variables)
    elif not isinstance(getattr(optimizer, "optimizer", None), optimizer_v1.Optimizer):
        keras_members.create_all_weights(optimizer, variables)
    for wrapped in list(vars(optimizer).values()):
        if isinstance(wrapped, optimizer_v1.Optimizer) or keras_members.creates_weights(wrapped):
            _create_optimizer_weights(wrapped, variables)


def make_loop_program(model: Any, mode: str, infeed: Any, outfeed: Any, steps: int) -> Callable[[], None]:
    """Returns a program of one mini-batch after another on one IPU."""
    name = STEP_METHODS[mode]
    trains = mode == "fit" and not model_step.overrides_method(model, name)

    def program() -> None:
        def body(*values: Any, **keywords: Any) -> Any:
            data = pack_element(infeed, values, keywords)
            with variable_creation.variable_creation_scope():
                results = model_step.train_step(model, data) if trains else model_step.convert_step(model, name)(data)
            return outfeed.enqueue(results)

        with replica_context(model):
            loops.repeat(steps, body, [], infeed)
            count_mini_batches(model, mode, steps)

    return compile_program(program, mode)


def make_accumulating_program(
    model: Any, infeed: Any, outfeed: Any, steps: int, options: ModelOptions
) -> Callable[[], None]:
    """Returns a training program that updates the weights once for several mini-batches."""
    _check_keras_optimizer(model.optimizer, options)
    accumulation = _Accumulation(model, infeed, outfeed, options)

    def program() -> None:
        with replica_context(model):
            loops.repeat(steps // accumulation.mini_batches, accumulation.update, [])
            count_mini_batches(model, "fit", steps)

    return compile_program(program, "fit")


class _Accumulation:
    """An update of a model's weights by the gradients of several mini-batches."""

    def __init__(self, model: Any, infeed: Any, outfeed: Any, options: ModelOptions) -> None:
        self.mini_batches = options.accumulation_steps or 1
        self._model, self._infeed, self._outfeed = model, infeed, outfeed
        self._method = GradientAccumulationReductionMethod.parse(options.accumulation_reduction)
        self._options = options.accumulation_kwargs
        self._trained: list[Any] = []  # the variables with gradients, known once the step is traced
        self._step = self._gradients if _is_built(model) else _as_traced_function(model, self._gradients, infeed)
        _create_slots(model)

    def _gradients(self, data: Any) -> tuple[list[Any], Any]:
        """Returns the gradients and metrics of a mini-batch."""
        with variable_creation.variable_creation_scope():
            step = model_step.compute_gradients(self._model, data)
            if step.captured and model_step.accepts_captured_gradients(self._model.optimizer):
                _count_captured(self._model.optimizer, step.captured)
        self._trained = [variable for _, variable in step.pairs]
        return [gradient for gradient, _ in step.pairs], step.metrics

    def _mini_batch(self, counter: Any, *values: Any, **keywords: Any) -> list[Any]:
        """Adds a mini-batch's gradients to the totals."""
        variables = self._model.trainable_variables
        totals, element = values[: len(variables)], values[len(variables) :]
        gradients, metrics = self._step(pack_element(self._infeed, element, keywords))
        gradients_by_variable = {id(variable): gradient for gradient, variable in zip(gradients, self._trained)}
        added = []
        for total, variable in zip(totals, variables):
            if id(variable) in gradients_by_variable:
                gradient = math_ops.cast(gradients_by_variable[id(variable)], total.dtype)
                total = accumulators.add_gradient(total, gradient, counter, self.mini_batches, self._method)
            added.append(total)
        return [counter + 1, *added, self._outfeed.enqueue(metrics)]

    def update(self) -> Any:
        """Accumulates the gradients of all mini-batches, then updates the weights."""
        variables, dtype = self._model.trainable_variables, self._options.get("dtype")
        zeros = [
            array_ops.zeros(variable.shape, accumulators.resolve_accumulator_dtype(dtype, variable))
            for variable in variables
        ]
        counter = ops.convert_to_tensor(0, dtypes.int32)
        done, *totals = loops.repeat(self.mini_batches, self._mini_batch, [counter, *zeros], self._infeed)
        accumulators.annotate_state_placement(
            done,
            self._options.get("offload_weight_update_variables"),
            self._options.get("replicated_optimizer_state_sharding"),
        )
        pairs = [
            (math_ops.cast(total, variable.dtype.base_dtype), variable)
            for total, variable in zip(totals, self._model.trainable_variables)
            if any(variable is trained for trained in self._trained)
        ]
        with variable_creation.variable_creation_scope():
            return to_operation(self._model.optimizer.apply_gradients(pairs))


def _count_captured(optimizer: Any, captured: dict[str, Any]) -> None:
    """Counts the captured gradients of one mini-batch in the optimizer's statistics."""
    if not hasattr(optimizer, "count_captured_gradients"):
        raise UnsupportedError(
            f"{type(optimizer).__name__} takes captured gradients ({', '.join(captured)}), and with gradient "
            "accumulation of a model without pipeline stages those of several mini-batches are not accumulated here. "
            "Leave out set_gradient_accumulation_options(), give the model pipeline stages, or take the capturing "
            "layers out."
        )
    optimizer.count_captured_gradients(captured)


def _as_traced_function(model: Any, step: Callable[[Any], Any], infeed: Any) -> Callable[[Any], Any]:
    """Returns a step as a function of TensorFlow, whose trace makes the variables of a model."""

    def traced(data: Any) -> Any:
        tracing.enter_compilation(ops.get_default_graph())
        with replica_context(model):
            return step(data)

    return def_function.function(traced, autograph=False).get_concrete_function(infeed._structure)


def check_no_custom_minimize(optimizer: Any) -> None:
    """Refuses an optimizer whose own `minimize` would not be called."""
    if isinstance(optimizer, (list, tuple)):
        raise UnsupportedError(
            f"The model is compiled with a list of {len(optimizer)} optimizers, and its gradients accumulate or it is "
            "pipelined; expected one optimizer, which updates all weights. Compile it with one, or leave out gradient "
            "accumulation and pipeline stages and apply the gradients in a `train_step`."
        )
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    overriding = next((kind for kind in type(optimizer).__mro__ if "minimize" in vars(kind)), object)
    if overriding.__module__.partition(".")[0] not in ("builtins", "keras", "tensorflow", "tf_ipu_shim", "tf_keras"):
        raise ValueError(
            "When using Gradient Accumulation or Pipelining, the optimizer must not override OptimizerV2.minimize. "
            "One `apply_gradients` applies the gradients of several mini-batches; "
            f"`{overriding.__name__}.minimize` would not be called. "
            "Put what it does into `apply_gradients`."
        )


def _check_keras_optimizer(optimizer: Any, options: ModelOptions) -> None:
    native = getattr(optimizer, "optimizer", None)
    if options.use_v2_accumulation and isinstance(native, optimizer_v1.Optimizer):
        raise ValueError(
            "use_v2_gradient_accumulation_optimizer may only be set to True with an optimizer of Keras, and "
            f"{type(native).__name__} is one of TensorFlow 1. Leave it out, or compile the model with one of "
            "tf.keras.optimizers."
        )


def compile_program(program: Callable[[], None], mode: str) -> Callable[[], None]:
    """Compiles a function without arguments and results as one program, named for reports."""

    def train() -> None:
        program()

    def evaluate() -> None:
        program()

    def predict() -> None:
        program()

    named = {"fit": train, "evaluate": evaluate, "predict": predict}[mode]
    function = def_function.function(named, autograph=False, jit_compile=True)
    tf_functions.omit_tracing_warning(function)  # each is traced once, but all have the same Python code
    return function


def to_operation(result: Any) -> Any:
    """Returns the operation of an `apply_gradients` result; new Keras optimizers return a variable."""
    if result is None or not isinstance(result, ops.Operation):
        return control_flow_ops.no_op()
    return result


def pack_element(infeed: Any, values: Any, keywords: dict[str, Any]) -> Any:
    """Returns an element in the structure of the dataset, from the arguments of a loop's body."""
    if keywords:
        return keywords
    return tuple(values) if isinstance(infeed._structure, tuple) else values[0]


def count_mini_batches(model: Any, mode: str, steps: int) -> None:
    """Adds mini-batches to the model's counters; the op also marks the program as Keras' for messages."""
    counters = {"fit": "_train_counter", "evaluate": "_test_counter", "predict": "_predict_counter"}
    with tracing.attribute_scope({vocabulary.KERAS_ATTRIBUTE: attr_value_pb2.AttrValue(b=True)}):
        getattr(model, counters[mode]).assign_add(steps)


@contextlib.contextmanager
def replica_context(model: Any) -> Iterator[None]:
    """The context in which a strategy runs a script's functions; optimizers apply gradients only there."""
    with distribute_lib.ReplicaContext(model.distribute_strategy, 0), autograph.enable_conversion():
        yield


def check_not_overridden(model: Any, names: tuple[str, ...], why: str) -> None:
    """Refuses a model whose own version of a method would not be called."""
    for name in names:
        if model_step.overrides_method(model, name):
            raise RuntimeError(
                f"The function `{name}` for the model {model.name} has been overridden. This is not supported {why}. "
                "Remove the override."
            )


__all__ = [
    "STEP_METHODS",
    "make_accumulating_program",
    "compile_program",
    "count_mini_batches",
    "pack_element",
    "replica_context",
    "make_loop_program",
    "create_variables",
    "check_not_overridden",
    "check_no_custom_minimize",
]
