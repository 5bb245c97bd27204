"""Dropout as a Keras layer that recomputes its mask instead of storing it."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2, sdk
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.ops import rand_ops


class Dropout(keras2.public_module().layers.Layer):  # type: ignore[misc]
    """Drops elements while training; the backward pass makes the mask again from its seed.

    Args:
        rate: the share that is dropped, in [0, 1).
        noise_shape: the mask's shape: for each dimension of the inputs its size, or 1.
        seed: `[2]` integers for the same mask in every step, or None for a new mask in each step.
        ref: whether the backward pass must use the same mask in case the tensor's layout differs there; it always does.
        **kwargs: keyword arguments of a Keras layer; for SDK 1.2 and 1.3 `seed_modifier`, see `rand_ops.dropout`.

    Source: `ipu_tensorflow_addons.keras.layers.Dropout`.

    Example:
        >>> y = Dropout(0.5)(tf.ones([100]), training=True)
        >>> sorted(set(y.numpy().tolist()))
        [0.0, 2.0]
    """

    @argument_order(3, "seed_modifier", until=rand_ops.LAST_WITH_SCALE)
    def __init__(
        self, rate: float, noise_shape: Any = None, seed: Any = None, *, ref: bool = True, **kwargs: Any
    ) -> None:
        old = {"seed_modifier"} & kwargs.keys() if sdk.current() <= rand_ops.LAST_WITH_SCALE else set()
        self._old_arguments = {name: kwargs.pop(name) for name in old}
        super().__init__(**kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed
        self.ref = ref

    def build(self, input_shape: Any) -> None:
        """Builds the layer, which has no variables.

        Args:
            input_shape: any.
        """
        super().build(input_shape)

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Drops elements, if training.

        Args:
            inputs: a float tensor.
            training: None means the phase Keras is in.

        Returns:
            A tensor like inputs.
        """
        if training is None:
            training = keras2.module("backend").learning_phase()

        def dropped() -> Any:
            return rand_ops.dropout(
                inputs,
                rate=self.rate,
                noise_shape=self.noise_shape,
                seed=self.seed,
                name=self.name,
                ref=self.ref,
                **self._old_arguments,
            )

        if tf.is_tensor(training):
            return tf.cond(tf.cast(training, tf.bool), dropped, lambda: tf.identity(inputs))
        return dropped() if training else tf.identity(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the inputs' shape.

        Args:
            input_shape: the shape of the inputs.
        """
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = {**super().get_config(), "rate": self.rate, "noise_shape": self.noise_shape, "seed": self.seed}
        config.update(self._old_arguments)
        return config if self.ref else {**config, "ref": False}
