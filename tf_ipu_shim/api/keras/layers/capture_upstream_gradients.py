"""Keras layer wrappers that capture the gradients of their outputs or activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.gradients.grad_util_ops import capture_upstream_gradients

_keras: Any = keras2.public_module()
_Layer: Any = _keras.layers.Layer

__all__ = ["CaptureActivationGradients", "CaptureUpstreamGradients", "capture_upstream_gradients"]


class _GradientCaptureLayerBase(_Layer):  # type: ignore[misc]
    """A layer that wraps another one and captures gradients.

    Args:
        layer: the other one; its variables are this one's.
        tag: the name under which gradients are kept; by default the layer's name and a word for what is kept.
    """

    _what = ""

    def __init__(self, layer: Any, tag: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._layer = layer
        self._tag = tag or f"{layer.name}_{self._what}"

    @property
    def tag(self) -> str:
        """The name under which a `GradientCaptureTape` has the gradients."""
        return self._tag

    @property
    def layer(self) -> Any:
        """The wrapped layer."""
        return self._layer

    def build(self, input_shape: Any) -> None:
        """Builds the wrapped layer.

        Args:
            input_shape: the shape of the inputs.
        """
        if not self._layer.built:
            self._layer.build(input_shape)
            self._layer.built = True
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments; the layer with its class."""
        return {**super().get_config(), "layer": _keras.layers.serialize(self._layer), "tag": self._tag}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the layer again.

        Args:
            config: the result of `get_config`.
        """
        return cls(**{**config, "layer": _keras.layers.deserialize(config["layer"])})


class CaptureUpstreamGradients(_GradientCaptureLayerBase):
    """Keeps the gradients of a layer's outputs.

    Args:
        layer: the layer.
        tag: under which they are kept; the layer's name and `_upstream_grad` when left out.

    Source: `keras.ipu.layers.CaptureUpstreamGradients`.

    Example:
        >>> CaptureUpstreamGradients(tf.keras.layers.Dense(10), tag="logits")(tf.ones([2, 4])).shape
        TensorShape([2, 10])
    """

    _what = "upstream_grad"

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer.

        Args:
            inputs: the inputs of the layer.
            *args: arguments of the layer.
            **kwargs: keyword arguments of the layer.

        Returns:
            The layer's outputs.
        """
        return capture_upstream_gradients(self._layer(inputs, *args, **kwargs), tag=self.tag)


class _ActivationCapture:
    """An activation function that keeps the gradients of its inputs.

    Args:
        tag: under which the gradients are kept.
    """

    def __init__(self, activation: Callable[..., Any], tag: str) -> None:
        self.activation = activation
        self.tag = tag

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the function of the same values."""
        return self.activation(capture_upstream_gradients(inputs, tag=self.tag), *args, **kwargs)


class _Place(NamedTuple):
    """The place of an activation function: the layer itself or a recurrent layer's cell."""

    holder: Any
    attribute: str


def _activations(layer: Any) -> dict[str, _Place]:
    """Returns the attributes with a layer's activation functions, by the argument of its constructor."""
    try:
        config = layer.get_config()
    except NotImplementedError:  # of the user's class, which takes arguments and does not say which
        config = {"activation": getattr(layer, "activation", None)}
    activations = {}
    for name, value in config.items():
        if "activation" not in name or value is None:
            continue
        for holder in (layer, getattr(layer, "cell", None)):
            attribute = next(
                (
                    attribute_name
                    for attribute_name in (name, f"_{name}")
                    if attribute_name in getattr(holder, "__dict__", ())
                ),
                None,
            )
            if attribute and callable(getattr(holder, attribute)):
                activations[name] = _Place(holder, attribute)
                break
    return activations


class CaptureActivationGradients(_GradientCaptureLayerBase):
    """Keeps the gradients of the inputs of a layer's activation functions.

    A layer with several, such as `tf.keras.layers.LSTM`, has the argument's name behind the tag: `tag_activation`,
    `tag_recurrent_activation`.

    Args:
        layer: a layer whose constructor accepts an activation function.
        tag: under which they are kept; the layer's name and `_activation_grad` when left out.

    Raises:
        ValueError: the layer has no activation function; or, when it is called, it is a recurrent layer that is not
            unrolled.

    Source: `keras.ipu.layers.CaptureActivationGradients`.

    Example:
        >>> CaptureActivationGradients(tf.keras.layers.Dense(10, "relu"))(tf.ones([2, 4])).shape
        TensorShape([2, 10])
    """

    _what = "activation_grad"

    def __init__(self, layer: Any, tag: str | None = None, **kwargs: Any) -> None:
        if not hasattr(layer, "get_config") or not self.layer_is_supported(layer):
            raise ValueError(
                f"Layer {getattr(layer, 'name', layer)} does not use an activation function. Give a Keras layer that "
                "has one, or use CaptureUpstreamGradients."
            )
        super().__init__(layer, tag, **kwargs)
        self._places = _activations(layer)
        several = len(self._places) > 1
        self._wrapped_activations = {
            name: _ActivationCapture(getattr(*location), f"{self.tag}_{name}" if several else self.tag)
            for name, location in self._places.items()
        }

    @staticmethod
    def layer_is_supported(layer: Any) -> bool:
        """Returns whether a layer has an activation function that its user can choose.

        Args:
            layer: a Keras layer.
        """
        return bool(_activations(layer))

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer with its activation functions behind marks.

        Args:
            inputs: the inputs of the layer.
            *args: arguments of the layer.
            **kwargs: keyword arguments of the layer.

        Returns:
            The layer's outputs.
        """
        if getattr(self._layer, "cell", None) is not None and not getattr(self._layer, "unroll", False):
            raise ValueError(
                f"The activations of {self._layer.name} are computed in a loop over time steps, and the gradients of "
                "a step cannot leave it. Make the layer with unroll=True, or use CaptureUpstreamGradients."
            )
        for name, location in self._places.items():
            setattr(*location, self._wrapped_activations[name])
        try:
            return self._layer(inputs, *args, **kwargs)
        finally:
            for name, location in self._places.items():
                setattr(*location, self._wrapped_activations[name].activation)
