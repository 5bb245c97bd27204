"""Embedding lookup on the IPU as a Keras layer."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.layers.ipu_layer import IPULayer
from tf_ipu_shim.frontend.ops.embeddings import embedding_ops
from tf_ipu_shim.frontend.ops.serialization_factor import check_factor

_keras = keras2.public_module()


class Embedding(IPULayer):
    """Turns integers into rows of a table.

    Args:
        input_dim: rows of the table.
        output_dim: size of a row.
        embeddings_initializer: the initializer of the table.
        embeddings_regularizer: the regularizer of the table.
        activity_regularizer: the regularizer of the outputs.
        embeddings_constraint: the constraint of the table.
        mask_zero: whether 0 means padding that later layers leave out.
        input_length: the length of the sequences; no effect.
        serialization_factor: the number of parts in which the table is looked up; divides `input_dim`. It divides the
            memory an IPU needs for the lookup, not its values.
        **kwargs: keyword arguments of a Keras layer.

    Raises:
        ValueError: the sizes do not fit; when built, if the inputs are not `[batch, length]`.

    Source: `ipu_tensorflow_addons.keras.layers.Embedding`.

    Example:
        >>> Embedding(1000, 64)(tf.constant([[3, 7, 3]])).shape
        TensorShape([1, 3, 64])
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: int | None = None,
        serialization_factor: int = 1,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("autocast", False)
        if not keras2.module("engine.base_layer_utils").v2_dtype_behavior_enabled():
            kwargs.setdefault("dtype", _keras.backend.floatx())  # TensorFlow 1 would take the integers' type
        super().__init__(activity_regularizer=_keras.regularizers.get(activity_regularizer), **kwargs)
        if input_dim % check_factor(serialization_factor):
            raise ValueError(
                f"serialization_factor must divide input_dim ({input_dim}), got {serialization_factor}. Choose a "
                "divisor of input_dim."
            )
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.embeddings_initializer = _keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = _keras.regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = _keras.constraints.get(embeddings_constraint)
        self.mask_zero = mask_zero
        note_arguments("keras Embedding", input_length=input_length)
        self.input_length = input_length
        self.serialization_factor = serialization_factor

    def build(self, input_shape: Any) -> None:
        """Makes the table.

        Args:
            input_shape: `[batch, length]`.

        Raises:
            ValueError: it has another rank.
        """
        if tf.TensorShape(input_shape).rank != 2:
            raise ValueError(
                f"The input shape should be a tensor of shape [batch, length], got {input_shape}. Reshape it to two "
                "dimensions."
            )
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            constraint=self.embeddings_constraint,
        )
        super().build(input_shape)

    def call(self, inputs: Any, inputs_are_sorted: bool = False, training: Any = None) -> Any:
        """Looks rows up.

        Args:
            inputs: `[batch, length]` integers below `input_dim`.
            inputs_are_sorted: accepted; sorted indices save time on an IPU only, and the values are the same.
            training: accepted; the lookup is the same in training and in inference.

        Returns:
            `[batch, length, output_dim]`.
        """
        inputs = tf.convert_to_tensor(inputs)
        return embedding_ops.embedding_lookup(
            tf.convert_to_tensor(self.embeddings),
            inputs if inputs.dtype.is_integer else tf.cast(inputs, tf.int32),
            self.serialization_factor,
            inputs_are_sorted,
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns which inputs are not padding, with `mask_zero`.

        Args:
            inputs: `[batch, length]`.
            mask: the mask of the inputs; ignored.
        """
        return tf.not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the inputs' shape and the size of a row.

        Args:
            input_shape: the shape of the inputs.
        """
        return tf.TensorShape(input_shape).concatenate(self.output_dim)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": _keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": _keras.regularizers.serialize(self.embeddings_regularizer),
            "activity_regularizer": _keras.regularizers.serialize(self.activity_regularizer),
            "embeddings_constraint": _keras.constraints.serialize(self.embeddings_constraint),
            "mask_zero": self.mask_zero,
            "input_length": self.input_length,
            "serialization_factor": self.serialization_factor,
        }
