"""Wrappers of Keras layers that keep the gradients which come back to their outputs or activations."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import keras2
from tf_ipu_shim.building.gradients.grad_util_ops import capture_upstream_gradients

_keras: Any = keras2.public()
_Layer: Any = _keras.layers.Layer

__all__ = ["CaptureActivationGradients", "CaptureUpstreamGradients", "capture_upstream_gradients"]


class _GradientCaptureLayerBase(_Layer):  # type: ignore[misc]
    """A layer that stands for another one.

    Args:
        layer: the other one; its variables are this one's.
        tag: under which the gradients are kept; the name of the layer with a word on what is kept when left out.
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
        """The layer this one stands for."""
        return self._layer

    def build(self, input_shape: Any) -> None:
        """Builds the layer this one stands for.

        Args:
            input_shape: of the inputs.
        """
        if not self._layer.built:
            self._layer.build(input_shape)
            self._layer.built = True
        self.built = True

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; the layer with its class."""
        return {**super().get_config(), "layer": _keras.layers.serialize(self._layer), "tag": self._tag}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the layer again.

        Args:
            config: what `get_config` gave.
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
            inputs: of the layer.
            *args: of the layer.
            **kwargs: of the layer.

        Returns:
            The layer's outputs.
        """
        return capture_upstream_gradients(self._layer(inputs, *args, **kwargs), tag=self.tag)


class CaptureActivationGradients(_GradientCaptureLayerBase):
    """Keeps the gradients of a layer's activation function's inputs: of the layer without its activation.

    Args:
        layer: a layer that has an activation.
        tag: under which they are kept; the layer's name and `_activation_grad` when left out.

    Raises:
        ValueError: the layer has no activation.

    Source: `keras.ipu.layers.CaptureActivationGradients`.

    Example:
        >>> CaptureActivationGradients(tf.keras.layers.Dense(10, "relu"))(tf.ones([2, 4])).shape
        TensorShape([2, 10])
    """

    _what = "activation_grad"

    def __init__(self, layer: Any, tag: str | None = None, **kwargs: Any) -> None:
        if not self.layer_is_supported(layer):
            raise ValueError(
                f"Layer {layer.name} does not use an activation function. Use CaptureUpstreamGradients, or give the "
                "layer an activation."
            )
        super().__init__(layer, tag, **kwargs)

    @staticmethod
    def layer_is_supported(layer: Any) -> bool:
        """Whether a layer has an activation other than the linear one.

        Args:
            layer: a Keras layer.
        """
        activation = getattr(layer, "activation", None)
        return activation is not None and activation is not _keras.activations.linear

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer, and its activation behind the mark.

        Args:
            inputs: of the layer.
            *args: of the layer.
            **kwargs: of the layer.

        Returns:
            The layer's outputs.
        """
        activation = self._layer.activation
        self._layer.activation = _keras.activations.linear
        try:
            outputs = self._layer(inputs, *args, **kwargs)
        finally:
            self._layer.activation = activation
        return activation(capture_upstream_gradients(outputs, tag=self.tag))
