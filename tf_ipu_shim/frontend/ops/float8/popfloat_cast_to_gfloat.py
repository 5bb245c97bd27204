"""`tensorflow.python.ipu.ops.experimental.popfloat_cast_to_gfloat`: casts to custom floating-point formats.

Graphcore does not publish how its library lays out the parameters and the packed bits. Here the
parameters are integers, and a packed number has sign, exponent and mantissa in its lower bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import errors
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops.float8 import gfloat_casts

cast_to_gfloat16_param_size = 29
cast_to_gfloat32_param_size = 29

_NATIVE = {"fp16": tf.float16, "fp32": tf.float32}


def calc_gfloat_params(
    man: int = 10,
    exp: int = 5,
    bias: int = 15,
    en_denorm: bool = True,
    en_inf: bool = True,
    calc_type: Any = tf.float32,
) -> tf.Tensor:
    """Returns the parameters of a format, for the casts.

    Args:
        man: mantissa bits.
        exp: exponent bits, at least 1.
        bias: the bias of the exponent.
        en_denorm: whether the format has denormals.
        en_inf: whether the largest exponent means infinities and NaN.
        calc_type: float16 or float32.

    Returns:
        int32, shape [29].

    Raises:
        UnsupportedError: the number of exponent bits is 0.

    Source: `tensorflow.python.ipu.ops.experimental.popfloat_cast_to_gfloat.calc_gfloat_params`.

    Example:
        >>> params = calc_gfloat_params(man=3, exp=4, bias=7)
    """
    if exp < 1:
        raise errors.UnsupportedError(
            f"popfloat formats with exp={exp} are not emulated. Use at least one exponent bit."
        )
    size = GenericFloat.get_gfloat_param_size(calc_type)
    fields = [man, exp, bias, int(en_denorm), int(en_inf)]
    return tf.constant(fields + [0] * (size - len(fields)), tf.int32)


def cast_native_to_gfloat(
    inputs: Any,
    params: Any,
    en_nanoo: bool = True,
    round_mode: str = "RN",
    sr_bits: int = 23,
    sr_density: str = "Invalid",
    sr_norm_offset: float = 0.0,
    sr_norm_scale: float = 1.0,
    sr_norm_min: float = -0.5,
    sr_norm_max: float = 0.5,
    sr_prob: float = 1.0,
    gfloat_format: str = "Invalid",
    calc_type: Any = tf.float32,
    out_type: Any = tf.float32,
) -> tf.Tensor:
    """Rounds to a format.

    Args:
        inputs: float16 or float32.
        params: the parameters of `calc_gfloat_params`.
        en_nanoo: whether numbers beyond the largest become NaN instead of the largest.
        round_mode: see `gfloat_casts.round_to_format`.
        sr_bits: random bits of stochastic rounding.
        sr_density: the density of the random numbers.
        sr_norm_offset: an argument of a density that is refused; no effect.
        sr_norm_scale: an argument of a density that is refused; no effect.
        sr_norm_min: an argument of a density that is refused; no effect.
        sr_norm_max: an argument of a density that is refused; no effect.
        sr_prob: an argument of a density that is refused; no effect.
        gfloat_format: the format's name; no effect: the parameters have the format.
        calc_type: float16 or float32.
        out_type: float16 or float32 for the rounded numbers, int8 or int16 for their bits.

    Returns:
        The rounded numbers or their bits.

    Raises:
        UnsupportedError: a rounding mode or density that is not emulated.

    Source: `tensorflow.python.ipu.ops.experimental.popfloat_cast_to_gfloat.cast_native_to_gfloat`.

    Example:
        >>> params = calc_gfloat_params(man=3, exp=4, bias=7)
        >>> cast_native_to_gfloat(tf.constant([3.49]), params, round_mode="RZ").numpy().tolist()
        [3.25]
    """
    note_arguments(
        "cast_native_to_gfloat",
        sr_norm_offset=sr_norm_offset,
        sr_norm_scale=sr_norm_scale,
        sr_norm_min=sr_norm_min,
        sr_norm_max=sr_norm_max,
        sr_prob=sr_prob,
        gfloat_format=gfloat_format,
        calc_type=tf.as_dtype(calc_type),
    )
    rounded = gfloat_casts.round_to_format(inputs, params, en_nanoo, round_mode, sr_bits, sr_density)
    if tf.as_dtype(out_type).is_integer:
        return gfloat_casts.encode(rounded, params, out_type)
    return tf.cast(rounded, out_type)


def cast_gfloat_to_native(
    inputs: Any, params: Any, gfloat_format: str = "Invalid", calc_type: Any = tf.float32, out_type: Any = tf.float32
) -> tf.Tensor:
    """Reads packed numbers.

    Args:
        inputs: int8 or int16, of `cast_native_to_gfloat`; floats are used unchanged.
        params: the parameters of `calc_gfloat_params`.
        gfloat_format: the format's name; no effect: the parameters have the format.
        calc_type: float16 or float32.
        out_type: float16 or float32.

    Returns:
        The numbers.

    Source: `tensorflow.python.ipu.ops.experimental.popfloat_cast_to_gfloat.cast_gfloat_to_native`.

    Example:
        >>> params = calc_gfloat_params(man=3, exp=4, bias=7)
        >>> packed = cast_native_to_gfloat(tf.constant([3.3]), params, out_type=tf.int8)
        >>> cast_gfloat_to_native(packed, params).numpy().tolist()
        [3.25]
    """
    note_arguments("cast_native_to_gfloat", gfloat_format=gfloat_format, calc_type=tf.as_dtype(calc_type))
    inputs = tf.convert_to_tensor(inputs)
    return tf.cast(gfloat_casts.decode(inputs, params) if inputs.dtype.is_integer else inputs, out_type)


class GenericFloat:
    """A format and its casts.

    Args:
        man: mantissa bits.
        exp: exponent bits.
        bias: the bias of the exponent.
        en_denorm: whether the format has denormals.
        en_inf: whether the largest exponent means infinities and NaN.
        calc_type: `"auto"`, `"fp32"` or `"fp16"`.
        name: the name of the format.

    Source: `tensorflow.python.ipu.ops.experimental.popfloat_cast_to_gfloat.GenericFloat`.

    Example:
        >>> eight_bits = GenericFloat(man=3, exp=4, bias=7)
        >>> eight_bits.cast_native_to_gfloat(tf.constant([3.3]), storage_type="fp32").numpy().tolist()
        [3.25]
    """

    def __init__(
        self,
        man: int = 10,
        exp: int = 5,
        bias: int = 15,
        en_denorm: bool = True,
        en_inf: bool = True,
        calc_type: str = "auto",
        name: Any = None,
    ) -> None:
        self.man, self.exp, self.bias = man, exp, bias
        self.en_denorm, self.en_inf = en_denorm, en_inf
        self.gfloat_calc_spec_dtype = calc_type
        self.name = name
        self.is_set: bool | None = None
        self._was_reset = False
        self._calc_dtype: Any = None

    def set_param(self) -> None:
        """Chooses the types the format is computed and kept in.

        Raises:
            RuntimeError: the format does not fit the calculation type, or that is unknown.
        """
        requested_dtype = self.gfloat_calc_spec_dtype
        wide = self.exp > 5 or self.man > 10 or (self.exp, self.man) == (5, 10)
        if requested_dtype not in ("auto", "fp32", "fp16"):
            raise RuntimeError(
                f"Gfloat calculation type not supported: {requested_dtype!r}. Use 'auto', 'fp32' or 'fp16'."
            )
        if wide and requested_dtype == "fp16":
            raise RuntimeError(
                f"Gfloat format cannot be generated using IEEE fp16: {self.man} mantissa and {self.exp} exponent bits "
                "need calc_type='fp32'. Pass calc_type='fp32', or fewer bits."
            )
        self._calc_dtype = tf.float32 if wide or requested_dtype == "fp32" else tf.float16
        self.is_set = True

    def reset(self) -> None:
        """Resets the parameters that `set_param` chose; call it before the next cast."""
        self.is_set, self._was_reset = None, True

    def _ready(self) -> GenericFloat:
        if not self.is_set:
            if self._was_reset:
                raise RuntimeError(
                    "Cast object properties were modified and object was not set again. Call set_param first."
                )
            self.set_param()
        return self

    def is_packed_float(self) -> bool:
        """Returns whether a number needs fewer bits than its native arithmetic type."""
        return self.get_gfloat_storage_dtype().is_integer

    def get_gfloat_storage_dtype(self) -> Any:
        """Returns the storage type: int8, int16, or the native type if packing saves nothing."""
        bits = 1 + self.exp + self.man
        native = self.get_gfloat_native_dtype()
        if bits <= 8:
            return tf.int8
        return tf.int16 if bits <= 16 and native == tf.float32 and (self.exp, self.man) != (5, 10) else native

    def get_gfloat_native_dtype(self) -> Any:
        """float16 or float32: the type that holds the format's numbers."""
        return self._ready()._calc_dtype

    def get_gfloat_calc_dtype(self) -> Any:
        """float16 or float32: the type casts are computed in on an IPU."""
        return self._ready()._calc_dtype

    @staticmethod
    def get_gfloat_param_size(calc_type: Any) -> int:
        """Returns how many parameters a format has.

        Args:
            calc_type: float16 or float32.

        Raises:
            RuntimeError: another type.
        """
        if calc_type not in (tf.float16, tf.float32):
            raise RuntimeError(f"Gfloat format calculation type not supported: {calc_type}. Use float16 or float32.")
        return cast_to_gfloat32_param_size if calc_type == tf.float32 else cast_to_gfloat16_param_size

    def get_gfloat_cast_param_size(self) -> int:
        """Returns how many parameters this format has."""
        return self.get_gfloat_param_size(self.get_gfloat_calc_dtype())

    def calc_quantized_fp16_params(self) -> tf.Tensor:
        """Returns the parameters for casts computed in float16."""
        return self._params(tf.float16)

    def calc_quantized_fp32_params(self) -> tf.Tensor:
        """Returns the parameters for casts computed in float32."""
        return self._params(tf.float32)

    def get_cast_to_gfloat_params(self) -> tf.Tensor:
        """Returns the parameters for casts."""
        return self._params(self.get_gfloat_calc_dtype())

    def get_gfloat_packed_params(self) -> tf.Tensor:
        """Returns the parameters for casts."""
        return self.get_cast_to_gfloat_params()

    def _params(self, calc_type: Any) -> tf.Tensor:
        return calc_gfloat_params(self.man, self.exp, self.bias, self.en_denorm, self.en_inf, calc_type)

    def get_mantissa_size(self) -> int:
        """Mantissa bits."""
        return self.man

    def get_exponent_size(self) -> int:
        """Exponent bits."""
        return self.exp

    def get_exponent_bias(self) -> int:
        """Returns the exponent's bias."""
        return self.bias

    def get_en_denorms(self) -> bool:
        """Returns whether the format has denormals."""
        return self.en_denorm

    def get_en_inf(self) -> bool:
        """Returns whether the format has infinities and NaN."""
        return self.en_inf

    def cast_native_to_gfloat(
        self,
        inputs: Any,
        en_nanoo: bool = True,
        round_mode: str = "RN",
        sr_density: str = "Invalid",
        sr_bits: int = 23,
        sr_norm_offset: float = 0.0,
        sr_norm_scale: float = 1.0,
        sr_norm_min: float = -0.5,
        sr_norm_max: float = 0.5,
        sr_prob: float = 1.0,
        storage_type: str = "auto",
    ) -> tf.Tensor:
        """Rounds to the format; see the function of the same name.

        Args:
            storage_type: `"auto"` for packed bits if they are smaller, `"fp32"` or `"fp16"` for numbers.

        Raises:
            RuntimeWarning: NaN on overflow is requested of a format without NaN.
            RuntimeError: the storage type is unknown, or the object was reset.
        """
        self._ready()
        if en_nanoo and not self.en_inf:
            raise RuntimeWarning("Gfloat format's Infs and Nans are not enabled; set en_nanoo=False.")
        if storage_type != "auto" and storage_type not in _NATIVE:
            raise RuntimeError(f"Gfloat storage format not supported: {storage_type!r}. Use 'auto', 'fp32' or 'fp16'.")
        out_type = _NATIVE.get(storage_type) or self.get_gfloat_storage_dtype()
        params = self.get_cast_to_gfloat_params()
        return cast_native_to_gfloat(
            inputs,
            params,
            en_nanoo,
            round_mode,
            sr_bits,
            sr_density,
            sr_norm_offset,
            sr_norm_scale,
            sr_norm_min,
            sr_norm_max,
            sr_prob,
            out_type=out_type,
            calc_type=self._calc_dtype,
        )

    def cast_gfloat_to_native(self, inputs: Any, storage_type: str = "auto") -> tf.Tensor:
        """Reads numbers of the format.

        Args:
            inputs: the inputs of `cast_native_to_gfloat`.
            storage_type: `"auto"` for the native type, `"fp32"` or `"fp16"`.

        Raises:
            RuntimeError: the object was reset.
        """
        if self._was_reset and not self.is_set:
            raise RuntimeError("Gfloat parameters are not set. Try to call set_param first.")
        out_type = _NATIVE.get(storage_type) or self.get_gfloat_native_dtype()
        return cast_gfloat_to_native(inputs, self.get_cast_to_gfloat_params(), out_type=out_type)

    def get_cast_native_to_gfloat_fun(
        self,
        en_nanoo: bool = True,
        round_mode: str = "RN",
        sr_bits: int = 23,
        sr_density: str = "Invalid",
        sr_norm_offset: float = 0.0,
        sr_norm_scale: float = 1.0,
        sr_norm_min: float = -0.5,
        sr_norm_max: float = 0.5,
        sr_prob: float = 1.0,
        storage_type: str = "auto",
    ) -> Callable[[Any], tf.Tensor]:
        """`cast_native_to_gfloat` with these arguments, as a function of the inputs."""
        arguments = dict(locals())
        return functools.partial(arguments.pop("self").cast_native_to_gfloat, **arguments)

    def get_cast_gfloat_to_native_fun(self, storage_type: str = "auto") -> Callable[[Any], tf.Tensor]:
        """`cast_gfloat_to_native` with this argument, as a function of the inputs."""
        return functools.partial(self.cast_gfloat_to_native, storage_type=storage_type)
