"""Reads underscore members of Keras 2 layers, models and optimizers. It imports none of the Keras packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

# By name: which Keras package has them is known when a script runs.
Layer: TypeAlias = Any
Model: TypeAlias = Any
Functional: TypeAlias = Any
Optimizer: TypeAlias = Any
CallbackList: TypeAlias = Any
ModelSavedModelSaver: TypeAlias = Any
FixedLossScale: TypeAlias = Any
# Modules of Keras.
FunctionalModule: TypeAlias = Any
DataAdapterModule: TypeAlias = Any
BackendModule: TypeAlias = Any


def inbound_nodes(layer: Layer) -> Any:
    """Returns the calls of a layer on Keras tensors."""
    return layer._inbound_nodes


def layer_losses(layer: Layer) -> Any:
    """Returns the losses that a layer adds to each call."""
    return layer._losses


def eager_losses(layer: Layer) -> Any:
    """Returns the losses that a layer has added while running eagerly."""
    return layer._eager_losses


def clear_losses(layer: Layer) -> None:
    """Forgets the losses of the last call."""
    layer._clear_losses()


def flatten_layers(layer: Layer) -> Any:
    """Returns a layer and all that are inside it."""
    return layer._flatten_layers()


def assert_compile_was_called(model: Model) -> None:
    """Refuses a model that is not compiled."""
    model._assert_compile_was_called()


def should_eval(model: Model, epoch: int, frequency: Any) -> bool:
    """Returns whether an epoch ends with a validation."""
    return model._should_eval(epoch, frequency)


def train_counter(model: Model) -> Any:
    """Returns the variable that counts steps of training."""
    return model._train_counter


def test_counter(model: Model) -> Any:
    """Returns the variable that counts steps of evaluation."""
    return model._test_counter


def predict_counter(model: Model) -> Any:
    """Returns the variable that counts steps of prediction."""
    return model._predict_counter


def saved_inputs_spec(model: Model) -> Any:
    """Returns the inputs of a SavedModel of the model; None if unknown."""
    return model._saved_model_inputs_spec


def set_save_spec(model: Model, *arguments: Any) -> None:
    """Sets the input specification of the model's SavedModel."""
    model._set_save_spec(*arguments)


def nested_inputs(model: Functional) -> Any:
    """Returns a functional model's inputs as its script gave them."""
    return model._nested_inputs


def nested_outputs(model: Functional) -> Any:
    """Returns a functional model's outputs as its script gave them."""
    return model._nested_outputs


def flatten_to_reference_inputs(model: Functional, tensors: Any) -> Any:
    """Inputs in the order of the model's own."""
    return model._flatten_to_reference_inputs(tensors)


def conform_to_reference_input(model: Functional, tensor: Any, ref_input: Any) -> Any:
    """Returns an input with the rank and dtype of the model's own."""
    return model._conform_to_reference_input(tensor, ref_input=ref_input)


def build_input_shape(layer: Layer, default: Any = None) -> Any:
    """Returns the shape that a layer was built for."""
    return getattr(layer, "_build_input_shape", default)


def build_map(functional_module: FunctionalModule, outputs: Any) -> Any:
    """Returns the calls of layers between Keras tensors, in order."""
    return functional_module._build_map(outputs)


def process_tensorlike(data_adapter: DataAdapterModule, data: Any) -> Any:
    """Returns arrays as tensors, with the dtypes of `fit`."""
    return data_adapter._process_tensorlike(data)


def check_data_cardinality(data_adapter: DataAdapterModule, data: Any) -> None:
    """Refuses arrays of different lengths."""
    data_adapter._check_data_cardinality(data)


def class_weight_function(data_adapter: DataAdapterModule, class_weight: Any) -> Any:
    """Returns the function that weights each sample of a dataset by its class."""
    return data_adapter._make_class_weight_map_fn(class_weight)


def history_of(callbacks: CallbackList) -> Any:
    """Returns the history of this call; None before training begins."""
    return getattr(callbacks, "_history", None)


def add_saved_property(saver: ModelSavedModelSaver, name: str, value: Callable[[], Any]) -> None:
    """Makes a writer of SavedModels write an additional property, unless it is None then."""
    properties = saver._python_properties_internal

    def with_property() -> dict[str, Any]:
        entry = value()
        return properties() if entry is None else {**properties(), name: entry}

    saver._python_properties_internal = with_property


def create_all_weights(optimizer: Optimizer, variables: Any) -> Any:
    """Makes an optimizer's slots and counters."""
    return optimizer._create_all_weights(variables)


def creates_weights(optimizer: Any) -> bool:
    """Returns whether something makes slots and counters as Keras' optimizers do."""
    return hasattr(optimizer, "_create_all_weights")


def is_default(method: Any) -> bool:
    """Returns whether Keras considers a method its own, not a user's."""
    return getattr(method, "_is_default", False)


def mark_default(method: Any, value: bool = True) -> None:
    """Makes Keras consider a method its own, not a user's."""
    method._is_default = value


def seed_generator(backend: BackendModule) -> Any:
    """Returns the generator of seeds that Keras has for a thread; None: no seed is set."""
    return getattr(backend._SEED_GENERATOR, "generator", None)


def draws_random_seed(generator: Any) -> bool:
    """Returns whether a `RandomGenerator` that has drawn nothing yet would draw its seed from Python's `random`."""
    return not generator._built and generator._rng_type == generator.RNG_STATELESS and generator._seed is None


def draw_from_global_seed(generator: Any) -> None:
    """Makes a `RandomGenerator` draw from TensorFlow's generator, which follows `tf.random.set_seed`."""
    generator._rng_type = generator.RNG_LEGACY_STATEFUL


def loss_scale_value(loss_scale: FixedLossScale) -> float:
    """Returns the constant of a fixed loss scale."""
    return loss_scale._loss_scale_value


def optimizer_name(optimizer: Optimizer) -> str:
    """Returns the name of an optimizer, by which its variables are called."""
    return getattr(optimizer, "_name", "optimizer")
