"""Keras layers that convert to and from float8."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.ops.float8.f8_ops import QuarterTensor, convert_from_f8, convert_to_f8

__all__ = ["ConvertFromF8", "ConvertToF8", "QuarterTensor", "convert_from_f8", "convert_to_f8"]

_Layer: Any = keras2.public_module().layers.Layer


class ConvertToF8(_Layer):  # type: ignore[misc]
    """Rounds numbers to eight bits.

    Args:
        **kwargs: keyword arguments of a Keras layer.

    Source: `ipu_tensorflow_addons.keras.layers.ConvertToF8`.

    Example:
        >>> from tensorflow.python.ipu.ops.f8_ops import Format, create_metadata
        >>> data, metadata = ConvertToF8()(tf.constant([0.5, 3.0], tf.float16), metadata=create_metadata(Format.F143))
        >>> data.dtype
        tf.uint8
    """

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("autocast", False)
        super().__init__(**kwargs)

    def call(self, data: Any, metadata: Any, **kwargs: Any) -> list[Any]:
        """Converts.

        Args:
            data: float16 or float32.
            metadata: the metadata of `f8_ops.create_metadata`.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            A list of the bits (uint8, with the shape of the data) and the metadata. Keras can pass a list to the next
            layer.
        """
        packed = convert_to_f8(data, metadata)
        return [packed.data, packed.metadata]


class ConvertFromF8(_Layer):  # type: ignore[misc]
    """Reads 8-bit floats.

    Args:
        dtype: the dtype of the result.
        **kwargs: keyword arguments of a Keras layer.

    Source: `ipu_tensorflow_addons.keras.layers.ConvertFromF8`.

    Example:
        >>> from tensorflow.python.ipu.ops.f8_ops import Format, create_metadata
        >>> data, metadata = ConvertToF8()(tf.constant([0.5, 3.0], tf.float16), metadata=create_metadata(Format.F143))
        >>> ConvertFromF8()([data, metadata]).numpy().tolist()
        [0.5, 3.0]
    """

    def __init__(self, dtype: Any = tf.half, **kwargs: Any) -> None:
        kwargs.setdefault("autocast", False)
        super().__init__(dtype=dtype, **kwargs)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Converts.

        Args:
            inputs: a `QuarterTensor`, or data and metadata.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            A tensor of the shape of the data.
        """
        return convert_from_f8(inputs, tf.as_dtype(self.dtype))
