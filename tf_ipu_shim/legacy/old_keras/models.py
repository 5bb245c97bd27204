"""`tensorflow.python.ipu.keras.model`: Keras models of SDK 1.2 to 2.1 on one IPU, or on replicas of one IPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2, sdk
from tf_ipu_shim.frontend.keras.models.functional_extensions import FunctionalExtension
from tf_ipu_shim.frontend.keras.models.sequential_extensions import SequentialExtension
from tf_ipu_shim.frontend.keras.training.model_step import keras_package
from tf_ipu_shim.legacy.old_keras import keras_packages
from tf_ipu_shim.legacy.old_keras.layer_replacement import IPULayerReplacer, replace_in_graph
from tf_ipu_shim.legacy.old_keras.old_arguments import chosen_count, refuse_deleted, remember
from tf_ipu_shim.legacy.old_keras.old_model import OldModel

FUNCTIONAL, SEQUENTIAL = "functional.Functional", "sequential.Sequential"
_NO_MODEL_OF_LAYERS = (1, 3), (2, 2)
"""Releases whose `Model` accepts only inputs and outputs."""


def dispatched(cls: Any, methods: type, stock_name: str, parts: Any) -> Any:
    """Returns the class of a new object: the variant for the Keras package of the layers."""
    root = keras_packages.root_of_parts(parts)
    if root == package_of_class(cls) or not vars(cls).get("_ipu_generated"):
        return cls
    return keras_packages.class_over(methods, stock_name, cls.__name__, root, cls.__module__)


def package_of_class(cls: type) -> str:
    """Returns the root of the Keras package that defines a class of models."""
    return keras2.root_of_class(cls) or keras2.root()


class ModelMethods(OldModel, FunctionalExtension):
    """A model with inputs and outputs that runs on one IPU; on more IPUs, on replicas that share the data.

    Args:
        *args: inputs and outputs: Keras tensors. As in SDK 1.2 a list of layers instead, which makes a `Sequential`.
        gradient_accumulation_count: mini-batches for each update of the weights; their gradients are summed.
        gradient_accumulation_dtype: the dtype of the sums; the weights' dtype by default.
        layer_replacement: whether to replace Keras' layers by layers of `ipu.keras.layers`, if they exist.
        accumulation_count: the name of `gradient_accumulation_count` in SDKs up to 1.4.
        accumulation_dtype: the name of `gradient_accumulation_dtype` in SDKs up to 1.4.
        **kwargs: `inputs`, `outputs`, `name`.

    Raises:
        ValueError: inputs or outputs are missing, or the count is smaller than 1.
        RuntimeError: SDK 2.2 to 2.5 is emulated.

    Source: `tensorflow.python.ipu.keras.model.IPUModel`.

    Example:
        >>> with strategy.scope():
        ...     inputs = tf.keras.Input((16,))
        ...     model = ipu.keras.Model(inputs, tf.keras.layers.Dense(4)(inputs), gradient_accumulation_count=8)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes a model of the class for the Keras package of the layers."""
        refuse_deleted(cls.__name__, "Model")
        if _is_of_layers(args, kwargs):
            return IPUSequential(*args, **kwargs)
        check_inputs_and_outputs(args, kwargs)
        kind = dispatched(cls, ModelMethods, FUNCTIONAL, (args[:2], kwargs.get("inputs"), kwargs.get("outputs")))
        return super().__new__(cls, *args, **kwargs) if kind is cls else kind(*args, **kwargs)

    def __init__(
        self,
        *args: Any,
        gradient_accumulation_count: int = 1,
        gradient_accumulation_dtype: Any = None,
        layer_replacement: bool = False,
        accumulation_count: int = 1,
        accumulation_dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        older = {"accumulation_count": None if accumulation_count == 1 else accumulation_count}
        mini_batches = (
            None if gradient_accumulation_count == 1 and older["accumulation_count"] else gradient_accumulation_count
        )
        count = chosen_count(type(self).__name__, mini_batches, older)
        dtype = accumulation_dtype if gradient_accumulation_dtype is None else gradient_accumulation_dtype
        init_graph(super().__init__, keras_package(self), args, kwargs, layer_replacement)
        remember_accumulation(self, count, dtype)

    def build(self, input_shape: Any) -> None:
        """Does nothing: a model with inputs and outputs already has its weights.

        Args:
            input_shape: ignored.
        """

    def _check_recorded_stages(self) -> None:
        """Layers may have been made in stages, but this model is on one IPU."""

    def _is_pipelined(self) -> bool:
        return False

    def _input_count(self) -> int:
        return len(nest.flatten(self.inputs))  # type: ignore[attr-defined]


class SequentialMethods(OldModel, SequentialExtension):
    """A chain of layers that runs on one IPU; on more IPUs, on replicas that share the data.

    Args:
        layers: a list of layers.
        gradient_accumulation_count: mini-batches for each update of the weights; their gradients are summed.
        gradient_accumulation_dtype: the dtype of the sums; the weights' dtype by default.
        layer_replacement: whether to replace Keras' layers by layers of `ipu.keras.layers`, if they exist.
        accumulation_count: the name of `gradient_accumulation_count` in SDKs up to 1.4.
        accumulation_dtype: the name of `gradient_accumulation_dtype` in SDKs up to 1.4.
        name: the name of the model.

    Raises:
        ValueError: `layers` is not a list of layers, or the count is smaller than 1.
        RuntimeError: SDK 2.2 to 2.5 is emulated.

    Source: `tensorflow.python.ipu.keras.model.IPUSequential`.

    Example:
        >>> with ipu.ipu_strategy.IPUStrategy().scope():
        ...     model = ipu.keras.Sequential([tf.keras.layers.Dense(4)], gradient_accumulation_count=8)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes a model of the class for the Keras package of the layers."""
        refuse_deleted(cls.__name__, "Sequential")
        kind = dispatched(cls, SequentialMethods, SEQUENTIAL, args[0] if args else kwargs.get("layers"))
        return super().__new__(cls, *args, **kwargs) if kind is cls else kind(*args, **kwargs)

    def __init__(
        self,
        layers: Sequence[Any] | None = None,
        gradient_accumulation_count: int = 1,
        gradient_accumulation_dtype: Any = None,
        layer_replacement: bool = False,
        accumulation_count: int = 1,
        accumulation_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(layers, list):
            raise ValueError(
                f"IPU Sequential requires a list of Layers. It was given {layers!r}. Pass a list of layers."
            )
        check_layers(layers, keras_package(self), "An IPU Sequential's list of Layers may only contain Keras Layers")
        older = {"accumulation_count": None if accumulation_count == 1 else accumulation_count}
        mini_batches = (
            None if gradient_accumulation_count == 1 and older["accumulation_count"] else gradient_accumulation_count
        )
        count = chosen_count(type(self).__name__, mini_batches, older)
        dtype = accumulation_dtype if gradient_accumulation_dtype is None else gradient_accumulation_dtype
        if layer_replacement:
            layers = [IPULayerReplacer()(layer) for layer in layers]
        super().__init__(layers, name=name)  # type: ignore[call-arg]
        remember_accumulation(self, count, dtype)
        remember(self, model_layers=list(layers))

    def _is_pipelined(self) -> bool:
        return False


def _is_of_layers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Returns whether a model is made of a list of layers, as `Model` was in SDK 1.2 and `Sequential` is later."""
    first, past = _NO_MODEL_OF_LAYERS
    if first <= sdk.current() < past or "inputs" in kwargs or "outputs" in kwargs:
        return False
    layers = args[0] if args else kwargs.get("layers")
    return isinstance(layers, list) and all(isinstance(count, int) for count in args[1:])


def check_inputs_and_outputs(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Checks that a model gets its inputs and outputs."""
    if len(args) != 2 - sum(name in kwargs for name in ("inputs", "outputs")):
        raise ValueError(
            "Model was not provided with 'inputs' and 'outputs'. Subclassed models that define call() are not "
            "supported: give the Keras tensors that the model begins and ends with."
        )


def check_layers(layers: Sequence[Any], package: str, phrase: str) -> None:
    """Checks that all are layers."""
    kind = keras2.module("engine.base_layer", package).Layer
    for layer in layers:
        if not isinstance(layer, kind):
            raise ValueError(f"{phrase}. It has {layer!r}, of type {type(layer).__name__}. Pass a list of layers.")


def init_graph(init: Any, package: str, args: Sequence[Any], kwargs: Mapping[str, Any], replace: bool) -> None:
    """Calls Keras' constructor of a model with inputs and outputs."""
    check_inputs_and_outputs(args, kwargs)
    positional, named = list(args), dict(kwargs)
    inputs = named.pop("inputs") if "inputs" in named else positional.pop(0)
    outputs = named.pop("outputs") if "outputs" in named else positional.pop(0)
    if replace:
        inputs, outputs = replace_in_graph(package, inputs, outputs)
    init(inputs, outputs, **named)


def remember_accumulation(model: Any, count: int, dtype: Any) -> None:
    """Tells a model that is not pipelined how many mini-batches make an update."""
    remember(model, gradient_accumulation_count=count, gradient_accumulation_dtype=dtype)
    remember(model, accumulation_count=count, accumulation_dtype=dtype)
    # By name: the second argument is another one in releases that have these models.
    model.set_gradient_accumulation_options(
        count, gradient_accumulation_reduction_method="sum", **({} if dtype is None else {"dtype": dtype})
    )


IPUModel = keras_packages.class_over(ModelMethods, FUNCTIONAL, "IPUModel", keras2.root(), __name__)
IPUSequential = keras_packages.class_over(SequentialMethods, SEQUENTIAL, "IPUSequential", keras2.root(), __name__)
Model = IPUModel
Sequential = IPUSequential
