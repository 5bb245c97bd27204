"""`tensorflow.python.ipu.ops.f8_ops`: float8 tensors with one scale per tensor.

Both formats have one zero, no infinities and one NaN (0x80), as in Noune et al., "8-bit Numerical Formats for Deep
Neural Networks". `ml_dtypes` has them as `float8_e4m3fnuz` and `float8_e5m2fnuz`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow.compat.v2 as tf

_NAN = 0x80
_LARGEST = 0x7F
_SCALE_BITS = 6


class Format(enum.IntEnum):
    """Float8 formats: bits of exponent and mantissa."""

    F143 = 0
    F152 = 1


_MANTISSA_BITS = {Format.F143: 3, Format.F152: 2}
_BIAS = {Format.F143: 8, Format.F152: 16}
_NUMPY = {Format.F143: ml_dtypes.float8_e4m3fnuz, Format.F152: ml_dtypes.float8_e5m2fnuz}
_VALUES = np.stack([np.arange(256, dtype=np.uint8).view(_NUMPY[f]).astype(np.float32) for f in Format])


def create_metadata(fmt: Format, scale: int = 0) -> np.uint8:
    """Packs a format and a scale into one byte.

    The lower six bits are the scale, the next bit is the format. An IPU's byte layout is not published; scripts pass
    the byte on without reading it.

    Args:
        fmt: the format.
        scale: the power of two that numbers are multiplied with when they are read, from -32 to 31.

    Returns:
        A NumPy scalar of type uint8: an argument of the calls here, or the value of a placeholder.

    Raises:
        ValueError: the scale is out of range.

    Source: `tensorflow.python.ipu.ops.f8_ops.create_metadata`.

    Example:
        >>> data, metadata = convert_to_f8(tf.constant([0.75], tf.float16), create_metadata(Format.F143, scale=-2))
        >>> convert_from_f8((data, metadata)).numpy().tolist()
        [0.75]
    """
    half = 1 << (_SCALE_BITS - 1)
    if not -half <= scale < half:
        raise ValueError(
            f"The scale of an F8 tensor is from {-half} to {half - 1}, not {scale}. Choose a scale in this range."
        )
    return np.uint8(int(Format(fmt)) << _SCALE_BITS | scale & (2 * half - 1))


class QuarterTensor:
    """8-bit floats and their format.

    Args:
        data: uint8; the bits. A variable stays one, so that `assign` works.
        metadata: the metadata of `create_metadata`.

    Raises:
        TypeError: the data are of another type.

    Source: `tensorflow.python.ipu.ops.f8_ops.QuarterTensor`.

    Example:
        >>> data, metadata = convert_to_f8(tf.constant([0.5, 3.0], tf.float16), create_metadata(Format.F143))
        >>> data.dtype
        tf.uint8
    """

    __hash__ = None  # type: ignore[assignment]  # equality is that of values

    def __init__(self, data: Any, metadata: Any) -> None:
        self.data = _check_data(data)
        self.metadata = metadata

    def numpy(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the bits and the metadata as arrays."""
        return np.asarray(self.data), np.asarray(self.metadata)

    @property
    def shape(self) -> Any:
        """The data's."""
        return self.data.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the data: uint8."""
        return self.data.dtype

    def assign(self, new_values: Any, **kwargs: Any) -> None:
        """Copies another tensor's data and metadata.

        Args:
            new_values: a `QuarterTensor`, or data and metadata.
            **kwargs: keyword arguments of `tf.Variable.assign`.

        Raises:
            TypeError: the data are not uint8.
        """
        data, metadata = new_values
        data = _check_data(data)
        if isinstance(self.data, tf.Variable):
            self.data.assign(data, **kwargs)
        else:
            self.data = data
        if isinstance(self.metadata, tf.Variable):
            self.metadata.assign(metadata, **kwargs)
        else:
            self.metadata = metadata

    # With these two `tf.nest`, and so Keras, looks into it.
    def __tf_flatten__(self) -> tuple[None, tuple[Any, Any]]:
        return None, (self.data, self.metadata)

    @classmethod
    def __tf_unflatten__(cls, metadata: None, components: tuple[Any, Any]) -> QuarterTensor:
        del metadata
        instance = cls.__new__(cls)
        instance.data, instance.metadata = components
        return instance

    def __getitem__(self, index: int) -> Any:
        return (self.data, self.metadata)[index]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.data, self.metadata))

    def __len__(self) -> int:
        return 2

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuarterTensor):
            return NotImplemented
        return all(np.array_equal(ours, theirs) for ours, theirs in zip(self.numpy(), other.numpy()))

    def __repr__(self) -> str:
        return f"QuarterTensor(data={self.data!r}, metadata={self.metadata!r})"


def convert_to_f8(values: Any, metadata: Any, name: Any = None) -> QuarterTensor:
    """Rounds numbers to eight bits: to nearest, ties to even.

    Numbers beyond the largest become the largest, as on an IPU whose NaN-on-overflow is off, which is the default.

    Args:
        values: float16 or float32.
        metadata: the metadata of `create_metadata`.
        name: the name of the op.

    Returns:
        The bits of `values / 2**scale`.

    Source: `tensorflow.python.ipu.ops.f8_ops.convert_to_f8`.

    Example:
        >>> convert_to_f8(tf.constant([1.0], tf.float16), create_metadata(Format.F152)).data.dtype
        tf.uint8
    """
    with tf.name_scope(name or "convert_to_f8"):
        metadata = tf.convert_to_tensor(metadata)
        fp8_format, scale = _unpack_metadata(metadata)
        values = tf.cast(tf.convert_to_tensor(values), tf.float32) * _power_of_two(-scale)
        mantissa_bits = tf.gather([_MANTISSA_BITS[f] for f in Format], fp8_format)
        bias = tf.gather([_BIAS[f] for f in Format], fp8_format)
        size = tf.abs(values)
        exponent = tf.maximum(tf.bitwise.right_shift(tf.bitcast(size, tf.int32), 23) - 127, 1 - bias)
        exponent = tf.minimum(exponent, 40)  # beyond the largest, and no infinity below
        # A mantissa that is rounded up to the next power of two carries into the exponent by itself.
        mantissa = tf.round(tf.minimum(size, 2.0**40) * _power_of_two(mantissa_bits - exponent))
        code = (exponent + bias - 1) * tf.bitwise.left_shift(1, mantissa_bits) + tf.cast(mantissa, tf.int32)
        code = tf.minimum(code, _LARGEST)
        code = tf.where((values < 0) & (code > 0), code + _NAN, code)
        code = tf.where(tf.math.is_nan(values), _NAN, code)
        return QuarterTensor(tf.cast(code, tf.uint8), metadata)


def convert_from_f8(packed_input: Any, dtype: Any = tf.float16, name: Any = None) -> tf.Tensor:
    """Reads 8-bit floats.

    Args:
        packed_input: a `QuarterTensor`, or data and metadata.
        dtype: the dtype of the result.
        name: the name of the op.

    Returns:
        The numbers.

    Source: `tensorflow.python.ipu.ops.f8_ops.convert_from_f8`.

    Example:
        >>> quarter = convert_to_f8(tf.constant([0.5, 3.3], tf.float16), create_metadata(Format.F143))
        >>> convert_from_f8(quarter).numpy().tolist()  # three bits of mantissa: 3.25 is the nearest
        [0.5, 3.25]
    """
    with tf.name_scope(name or "convert_from_f8"):
        data, metadata = packed_input
        fp8_format, scale = _unpack_metadata(tf.convert_to_tensor(metadata))
        table = tf.gather(tf.constant(_VALUES), fp8_format)
        values = tf.gather(table, tf.cast(tf.convert_to_tensor(data), tf.int32))
        return tf.cast(values * _power_of_two(scale), dtype)


def canonicalise_input(inp: Any, expected_rank: int = 3, name: str = "MatMulCanonicalise") -> tuple[Any, Any]:
    """Brings an operand to a rank: axes of size 1 in front, or leading axes joined.

    Args:
        inp: a `QuarterTensor`, data and metadata, or a tensor.
        expected_rank: the rank.
        name: the name of the ops.

    Returns:
        The data and the metadata. A plain tensor becomes F143 with scale 0 first.

    Raises:
        Exception: the shape is not fully defined.

    Source: `tensorflow.python.ipu.ops.f8_ops.canonicalise_input`.

    Example:
        >>> quarter = convert_to_f8(tf.ones([4, 5], tf.float16), create_metadata(Format.F143))
        >>> data, metadata = canonicalise_input(quarter)
        >>> data.shape
        TensorShape([1, 4, 5])
    """
    packed = isinstance(inp, (QuarterTensor, tuple, list))
    with tf.name_scope(name):
        data, metadata = inp if packed else convert_to_f8(inp, create_metadata(Format.F143))
        if not data.shape.is_fully_defined():
            raise Exception(f"Input shape must be fully defined: it is {data.shape}. Use set_shape.")
        shape = [1] * (expected_rank - len(data.shape)) + list(data.shape)
        joined = len(shape) - expected_rank + 1
        return tf.reshape(data, [int(np.prod(shape[:joined])), *shape[joined:]]), metadata


def canonicalise_output(output: Any, lhs: Any) -> tf.Tensor:
    """Reshapes the matmul of rank-3 operands to the leading axes of the left operand.

    Args:
        output: shape [batch, m, n].
        lhs: the original left operand, shape [..., m, k].

    Returns:
        Shape [..., m, n].

    Source: `tensorflow.python.ipu.ops.f8_ops.canonicalise_output`.

    Example:
        >>> canonicalise_output(tf.ones([6, 4, 7]), tf.ones([2, 3, 4, 5])).shape
        TensorShape([2, 3, 4, 7])
    """
    shape = lhs[0].shape if isinstance(lhs, (QuarterTensor, tuple, list)) else lhs.shape
    return tf.reshape(output, [*shape[:-1], output.shape[-1]])


def f8_matmul(lhs: Any, rhs: Any, name: str = "f8_matmul") -> tf.Tensor:
    """Returns a matmul of 8-bit floats, accumulated in float32.

    Args:
        lhs: a `QuarterTensor`, or data and metadata, shape [..., m, k]. A plain tensor is used unchanged.
        rhs: the same, shape [..., k, n].
        name: the name of the op.

    Returns:
        float16, shape [..., m, n].

    Source: `tensorflow.python.ipu.ops.f8_ops.f8_matmul`.

    Example:
        >>> metadata = create_metadata(Format.F143)
        >>> x, w = tf.ones([2, 4], tf.float16), tf.ones([4, 3], tf.float16)
        >>> f8_matmul(convert_to_f8(x, metadata), convert_to_f8(w, metadata)).numpy().tolist()
        [[4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]
    """
    with tf.name_scope(name):
        return tf.cast(tf.matmul(_to_float(lhs), _to_float(rhs)), tf.float16)


def f8_conv_1d(
    inputs: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = (1,),
    name: str = "f8_conv_1d",
) -> tf.Tensor:
    """Returns a convolution over one axis of 8-bit floats, summed in float32.

    Args:
        inputs: a `QuarterTensor`, or data and metadata, shape [batch, width, channels].
        filters: the same, shape [width, channels, outputs].
        strides: the stride of the width.
        padding: as in `tf.nn.conv1d`.
        data_format: `"NWC"` or `"NCW"`.
        dilations: the dilation of the width.
        name: the name of the op.

    Returns:
        float16.

    Raises:
        ValueError: the data format is another.

    Source: `tensorflow.python.ipu.ops.f8_ops.f8_conv_1d`.

    Example:
        >>> x = convert_to_f8(tf.ones([1, 8, 2], tf.float16), create_metadata(Format.F143))
        >>> w = convert_to_f8(tf.ones([3, 2, 4], tf.float16), create_metadata(Format.F143))
        >>> f8_conv_1d(x, w, 1, "SAME").shape
        TensorShape([1, 8, 4])
    """
    if data_format not in ("NWC", "NCW"):
        raise ValueError(
            f"`data_format` must be 'NWC' or 'NCW'. Received: data_format={data_format}. Pass one of these two."
        )
    return _convolution(tf.nn.conv1d, inputs, filters, strides, padding, data_format, list(dilations), name)


def f8_conv_2d(
    inputs: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str = "f8_conv_2d",
) -> tf.Tensor:
    """Returns a convolution over two axes of 8-bit floats, summed in float32.

    Args:
        inputs: a `QuarterTensor`, or data and metadata, shape [batch, height, width, channels].
        filters: the same, shape [height, width, channels, outputs].
        strides: as in `tf.nn.conv2d`.
        padding: as in `tf.nn.conv2d`.
        data_format: `"NHWC"` or `"NCHW"`.
        dilations: the dilations of each axis.
        name: the name of the op.

    Returns:
        float16.

    Source: `tensorflow.python.ipu.ops.f8_ops.f8_conv_2d`.

    Example:
        >>> x = convert_to_f8(tf.ones([1, 8, 8, 2], tf.float16), create_metadata(Format.F143))
        >>> w = convert_to_f8(tf.ones([3, 3, 2, 4], tf.float16), create_metadata(Format.F143))
        >>> f8_conv_2d(x, w, 1, "SAME").shape
        TensorShape([1, 8, 8, 4])
    """
    return _convolution(tf.nn.conv2d, inputs, filters, strides, padding, data_format, list(dilations), name)


def f8_conv_3d(
    inputs: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str = "f8_conv_3d",
) -> tf.Tensor:
    """Returns a convolution over three axes of 8-bit floats, summed in float32.

    Args:
        inputs: a `QuarterTensor`, or data and metadata, shape [batch, depth, height, width, channels].
        filters: the same, shape [depth, height, width, channels, outputs].
        strides: as in `tf.nn.conv3d`.
        padding: as in `tf.nn.conv3d`.
        data_format: `"NDHWC"` or `"NCDHW"`.
        dilations: the dilations of each axis.
        name: the name of the op.

    Returns:
        float16.

    Source: `tensorflow.python.ipu.ops.f8_ops.f8_conv_3d`.

    Example:
        >>> x = convert_to_f8(tf.ones([1, 4, 4, 4, 2], tf.float16), create_metadata(Format.F143))
        >>> w = convert_to_f8(tf.ones([3, 3, 3, 2, 4], tf.float16), create_metadata(Format.F143))
        >>> f8_conv_3d(x, w, [1, 1, 1, 1, 1], "SAME").shape
        TensorShape([1, 4, 4, 4, 4])
    """
    return _convolution(tf.nn.conv3d, inputs, filters, strides, padding, data_format, list(dilations), name)


def _convolution(
    op: Any, inputs: Any, filters: Any, strides: Any, padding: Any, data_format: str, dilations: Any, name: str
) -> tf.Tensor:
    """Convolves with channels last, the only order of TensorFlow's own CPU kernels."""
    channels_first = data_format.startswith("NC")

    def to_channels_last(values: Any) -> Any:
        full = channels_first and isinstance(values, (list, tuple)) and len(values) == len(data_format)
        return [values[0], *values[2:], values[1]] if full else values

    with tf.name_scope(name):
        float_inputs, weights = _to_float(inputs), _to_float(filters)
        axes = list(range(len(data_format)))
        if channels_first:
            float_inputs = tf.transpose(float_inputs, to_channels_last(axes))
        result = op(
            float_inputs,
            weights,
            to_channels_last(strides),
            to_channels_last(padding),
            dilations=to_channels_last(dilations),
        )
        if channels_first:
            result = tf.transpose(result, [0, axes[-1], *axes[1:-1]])
        return tf.cast(result, tf.float16)


def _to_float(operand: Any) -> tf.Tensor:
    if isinstance(operand, (QuarterTensor, tuple, list)):
        return convert_from_f8(operand, tf.float32)
    return tf.cast(tf.convert_to_tensor(operand), tf.float32)


def _check_data(data: Any) -> Any:
    tensor = data if isinstance(data, tf.Variable) else tf.convert_to_tensor(data)
    if tensor.dtype != tf.uint8:
        raise TypeError(
            f"Trying to set/update QuarterTensor data with a tensor of type {tensor.dtype.name}; expected "
            "uint8. Convert numbers with convert_to_f8."
        )
    return tensor


def _unpack_metadata(metadata: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    packed = tf.cast(tf.reshape(metadata, []), tf.int32)
    fp8_format, scale = packed // (1 << _SCALE_BITS), packed % (1 << _SCALE_BITS)
    return fp8_format, tf.where(scale >= 1 << (_SCALE_BITS - 1), scale - (1 << _SCALE_BITS), scale)


def _power_of_two(exponent: tf.Tensor) -> tf.Tensor:
    return tf.bitcast(tf.bitwise.left_shift(exponent + 127, 23), tf.float32)
