"""A dense Keras layer with a float8 kernel, for inference."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.ops.float8.f8_ops import Format, QuarterTensor, convert_to_f8, create_metadata, f8_matmul

__all__ = ["Dense", "Format", "QuarterTensor", "create_metadata", "f8_matmul"]

_keras: Any = keras2.public_module()
_Dense: Any = _keras.layers.Dense
_MIN_SCALE, _MAX_SCALE = -32, 31


class Dense(_Dense):  # type: ignore[misc]
    """Multiplies 8-bit floats by a kernel of 8-bit floats, which is not trained.

    For other inputs it is Keras' own dense layer.

    Args:
        units: size of the output.
        kernel_format: the format of the kernel's 8-bit floats.
        kernel_scale: the exponent of two that scales these floats.
        kernel_data_initializer: the initializer of the kernel's bits, uint8 `[inputs, units]`; when left out, the
            kernel initializer's values are converted.
        **kwargs: keyword arguments of `tf.keras.layers.Dense`.

    Raises:
        ValueError: a scale that does not fit; when built, if the last dimension of the inputs is unknown.
        TypeError: when built for another type than floats; when called with inputs of a kind it was not built for.

    Source: `ipu_tensorflow_addons.keras.layers.Dense`.

    Example:
        >>> from ipu_tensorflow_addons.keras.layers import ConvertToF8
        >>> x = ConvertToF8()(tf.ones([2, 4], tf.float16), metadata=create_metadata(Format.F143))
        >>> Dense(10)(x).dtype, Dense(10)(tf.ones([2, 4])).dtype
        (tf.float16, tf.float32)
    """

    def __init__(
        self,
        units: int,
        kernel_format: Format = Format.F143,
        kernel_scale: int = 0,
        kernel_data_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        if not _MIN_SCALE <= kernel_scale <= _MAX_SCALE:
            raise ValueError(
                f"`kernel_scale` should be in the range [{_MIN_SCALE}, {_MAX_SCALE}], got {kernel_scale}. Pass a value "
                "in this range."
            )
        super().__init__(units, **kwargs)
        self.kernel_format = Format(kernel_format)
        self.kernel_scale = kernel_scale
        self.kernel_data_initializer = _keras.initializers.get(kernel_data_initializer)
        self.input_spec = None

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer, building it first; passes Keras a list of tensors, which it accepts."""
        return super().__call__(list(inputs) if isinstance(inputs, QuarterTensor) else inputs, *args, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Creates the variables: with two input shapes, for 8-bit floats.

        Args:
            input_shape: `[..., inputs]`, or a list of this shape and the metadata's.

        Raises:
            ValueError: the last dimension is unknown.
            TypeError: the layer's type is not a float.
        """
        dtype = tf.as_dtype(self.dtype or "float16")
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(
                f"Unable to build `Dense` layer with non-floating point dtype {dtype}; expected float16 or "
                "float32. Pass such a dtype."
            )
        if not _is_f8_shape_pair(input_shape):
            super().build(input_shape)
            self.input_spec = None
            return
        size = tf.TensorShape(input_shape[0]).as_list()[-1]
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to a Dense layer should be defined. Found None in "
                "input_shape. Set it."
            )
        data = self.add_weight(
            "kernel_data",
            shape=[size, self.units],
            dtype=tf.uint8,
            initializer=self.kernel_data_initializer or self._converted,
            trainable=False,
        )
        metadata = self.add_weight(
            "kernel_metadata", shape=[], dtype=tf.uint8, initializer=lambda *_, **__: self._metadata(), trainable=False
        )
        self.kernel = QuarterTensor(data, metadata)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=[self.units],
                dtype=tf.float16,
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    @property
    def weights(self) -> list[Any]:
        """The variables: the kernel (for 8-bit floats data and metadata), then the bias."""
        of_bits = self.built and isinstance(self.kernel, QuarterTensor)
        return [*self.non_trainable_weights, *self.trainable_weights] if of_bits else super().weights

    def _metadata(self) -> Any:
        return tf.reshape(create_metadata(self.kernel_format, self.kernel_scale), [])

    def _converted(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return convert_to_f8(self.kernel_initializer(shape, dtype=tf.float32), self._metadata()).data

    def call(self, inputs: Any) -> Any:
        """Multiplies.

        Args:
            inputs: `[..., inputs]`: 8-bit floats as a `QuarterTensor`, or as data and metadata; or floats.

        Returns:
            `[..., units]`, for 8-bit floats of float16.

        Raises:
            TypeError: the layer was built for the other kind.
        """
        of_bits = isinstance(self.kernel, QuarterTensor)
        if of_bits != isinstance(inputs, (list, tuple)):
            raise TypeError(
                f"Layer {self.name!r} was built for {'8-bit floats' if of_bits else 'floats'} "
                f"and got {'floats' if of_bits else '8-bit floats'}; both must be equal. Create "
                "another layer for them."
            )
        if not of_bits:
            return super().call(inputs)
        outputs = f8_matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = tf.nn.bias_add(outputs, tf.cast(self.bias, outputs.dtype))
        return outputs if self.activation is None else self.activation(outputs)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "kernel_format": int(self.kernel_format),
            "kernel_scale": self.kernel_scale,
            "kernel_data_initializer": _keras.initializers.serialize(self.kernel_data_initializer),
        }


def _is_f8_shape_pair(shape: Any) -> bool:
    """Returns whether these are the shapes of data and of metadata, not of floats."""
    return isinstance(shape, (list, tuple)) and len(shape) == 2 and not isinstance(shape[0], (int, type(None)))
