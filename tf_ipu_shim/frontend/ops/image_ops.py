"""`tensorflow.python.ipu.ops.image_ops`: normalizes images on the IPU."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

_TYPES = (tf.float16, tf.float32, tf.uint8)


def normalise_image(image: Any, channel_offsets: Any, channel_scales: Any, scale: float = 1, name: Any = None) -> Any:
    """Normalises the channels of images and pads them to four, which are fast in convolutions on an IPU.

    Args:
        image: shape [..., 3], channels last; float16, float32 or uint8.
        channel_offsets: shape [3]; subtracted after scaling.
        channel_scales: shape [3]; factors that are applied last.
        scale: a factor for every channel, applied first.
        name: the name of the op.

    Returns:
        `(image * scale - channel_offsets) * channel_scales` with a fourth channel of zeros, shape [..., 4]. Its type is
        the image's; float16 for uint8.

    Raises:
        TypeError: the image is of another type.
        InvalidArgumentError: the image, the offsets or the scales are not of three channels.

    Source: `tensorflow.python.ipu.ops.image_ops.normalise_image`.

    Example:
        >>> pixel = tf.constant([[255.0, 0.0, 127.5]])
        >>> normalise_image(pixel, [0.5, 0.5, 0.5], [4.0, 4.0, 4.0], scale=1 / 255).numpy().tolist()
        [[2.0, -2.0, 0.0, 0.0]]
    """
    image = tf.convert_to_tensor(image)
    if image.dtype not in _TYPES:
        raise TypeError(
            f"The input `image` to `normalise_image` must be float16, float32 or uint8, but it is {image.dtype.name}. "
            "Cast it with tf.cast."
        )
    if not image.shape.rank:
        raise _invalid_argument(
            f"The image has the shape {image.shape}, expected channels as the last axis. Use set_shape."
        )
    if not image.shape[-1:].is_compatible_with([3]):
        raise _invalid_argument(f"The image has {image.shape[-1]} channels, expected 3. Its shape is {image.shape}.")
    with tf.name_scope(name or "normalise_image"):
        dtype = tf.float16 if image.dtype == tf.uint8 else image.dtype
        offsets, scales = (tf.cast(tf.convert_to_tensor(value), dtype) for value in (channel_offsets, channel_scales))
        for argument, values in (("channel_offsets", offsets), ("channel_scales", scales)):
            if not values.shape.is_compatible_with([3]):
                raise _invalid_argument(
                    f"The input `{argument}` must be the same size as the number of image channels 3, but was of the "
                    f"shape {values.shape}. Give it a number for each channel."
                )
        normalised = (tf.cast(image, dtype) * tf.cast(scale, dtype) - offsets) * scales
        padding = [[0, 0]] * (len(image.shape) - 1) + [[0, 1]]
        return tf.pad(normalised, padding)


def _invalid_argument(message: str) -> Exception:
    return tf.errors.InvalidArgumentError(None, None, f"normalise_image: {message}")
