"""`tensorflow.python.ipu.keras.layer_replacement`: replaces a model's Keras layers by layers of `ipu.keras.layers`."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.keras.models import networks
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import stage_of
from tf_ipu_shim.tf_private import keras_members

_LAYERS = (
    "Dropout",
    "Embedding",
    "GRU",
    "GroupNorm",
    "GroupNormalization",
    "InstanceNorm",
    "InstanceNormalization",
    "LSTM",
    "LayerNorm",
    "LayerNormalization",
    "PopnnGRU",
    "PopnnLSTM",
    "SerialDense",
)
# Another layer of that name in newer Keras: its arguments mean other things.
_KEPT = ("GroupNormalization",)


class IPULayerReplacer:
    """Exchanges a layer of Keras for the layer of that name in `ipu.keras.layers`, if there is one.

    Source: `tensorflow.python.ipu.keras.layer_replacement.IPULayerReplacer`.

    Example:
        >>> type(IPULayerReplacer()(tf.keras.layers.LSTM(4))).__name__
        'PopnnLSTM'
    """

    @staticmethod
    def get_ipu_layer_names() -> list[str]:
        """Returns names of the layers of `ipu.keras.layers`."""
        return list(_LAYERS)

    @staticmethod
    def get_blacklisted_ipu_layer_names() -> list[str]:
        """Returns names of IPU layers that replace no Keras layer."""
        return list(_KEPT)

    def __call__(self, layer_instance: Any) -> Any:
        """Exchanges a layer.

        Args:
            layer_instance: a layer. Layers of the user's classes, and layers without an IPU counterpart, are returned
                unchanged.

        Returns:
            The layer, or one with the same name, configuration and weights.

        Raises:
            RuntimeError: the layer of `ipu.keras.layers` does not accept the layer's arguments.
        """
        name = type(layer_instance).__name__
        if name not in _LAYERS or name in _KEPT or not _is_stock(type(layer_instance)):
            return layer_instance
        kind = getattr(importlib.import_module("tf_ipu_shim.api.ipu.keras.layers"), name)
        try:
            replacement = kind(**_arguments(layer_instance, kind))
        except (TypeError, ValueError) as error:
            raise RuntimeError(
                f"Could not substitute Keras {name} layer for the IPU's {kind.__name__}: {error} Change the layer's "
                "arguments, or leave out layer_replacement."
            ) from error
        if layer_instance.built and layer_instance.weights:
            shape = keras_members.build_input_shape(layer_instance)
            replacement.build(layer_instance.input_shape if shape is None else shape)
            replacement.built = True
            values = {
                _name(weight): value for weight, value in zip(layer_instance.weights, layer_instance.get_weights())
            }
            replacement.set_weights([values[_name(weight)] for weight in replacement.weights])
        return replacement


def replace_in_graph(package: str, inputs: Any, outputs: Any) -> tuple[Any, Any]:
    """Returns the same graph with layers exchanged; calls of layers stay in their pipeline stages."""
    functional = keras2.module("engine.functional", package).Functional
    stock = functional(inputs, outputs)
    exchanged: dict[int, Any] = {}
    replacer = IPULayerReplacer()

    def exchange(layer: Any) -> Any:
        return exchanged.setdefault(id(layer), replacer(layer))

    copied = keras2.module("models", package).clone_model(stock, clone_function=exchange)
    before = networks.network_of(package, stock.inputs, stock.outputs).nodes
    after = networks.network_of(package, copied.inputs, copied.outputs).nodes
    for old, new in zip(before, after):
        stage = stage_of(old) if stage_of(old) is not None else stage_of(old.layer)
        if stage is not None:
            object.__setattr__(new, "_pipeline_stage", stage)
    return nest.pack_sequence_as(inputs, copied.inputs), nest.pack_sequence_as(outputs, copied.outputs)


def _name(weight: Any) -> str:
    """Returns the name of a weight in its layer: IPUs' have gamma and beta in another order, and biases for a bias."""
    return weight.name.rpartition("/")[2].replace("biases", "bias")


def _is_stock(kind: type) -> bool:
    return any(kind.__module__.startswith(root + ".") for root in keras2.ROOTS)


def _arguments(layer: Any, kind: type) -> dict[str, Any]:
    """Returns the arguments of a layer, without defaults that the other class does not accept."""
    parameters = inspect.signature(kind).parameters
    defaults = {name: value.default for name, value in inspect.signature(type(layer)).parameters.items()}
    arguments = {}
    for name, value in layer.get_config().items():
        if name in parameters or name in ("name", "trainable", "dtype", "batch_input_shape"):
            arguments[name] = value
        elif value not in (defaults.get(name), None, False):
            raise ValueError(f"it takes no {name}={value!r}.")
    return arguments
