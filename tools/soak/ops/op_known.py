"""Differences that are known, and why they stay: the soak reports them, and does not fail.

Differences of TensorFlow 2.15.1 and 2.21.0. An op with a difference that is not listed fails.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

_IS_NEW = int(tf.version.VERSION.split(".")[1]) >= 21

_NO_BATCH = (
    "the mean of an empty batch is zero in oneDNN and NaN in XLA; TensorFlow's kernel does not write it. Eagerly "
    "the CPU uses oneDNN"
)
_UNINITIALISED = "results that nothing writes"
_EMPTY = (
    "for an empty input, oneDNN on the CPU returns the input's shape, such as (0, 4, 4, 3) with 5 filters. It "
    "refuses empty filters"
)

# Of tensors without elements, in every mode.
EMPTY: dict[str, str] = {
    **dict.fromkeys((f"FusedBatchNorm{kind}" for kind in ("", "V2", "V3", "Grad", "GradV2", "GradV3")), _NO_BATCH),
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), _EMPTY),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), "the CPU uses oneDNN, which returns zeros for an empty gradient"),
    **dict.fromkeys((f"{kind}{axes}" for kind in ("RFFT", "IRFFT") for axes in ("", "2D", "3D")), _UNINITIALISED),
    "MatrixSolveLs": _UNINITIALISED,  # of matrices without rows
    "Conv3DBackpropInputV2": _UNINITIALISED,  # of a gradient without channels
}
_WITHOUT_ELEMENTS = ("empty", "zero-size dimension")


@dataclasses.dataclass(frozen=True)
class Difference:
    """A difference that TensorFlow leaves open.

    Args:
        modes: in which it is.
        inputs: beginnings of what is in the inputs, such as the names in `hostile.EDGES`; a `$` is the end of a name.
        why: the reason.
        types: a part of the description of the case's types.
    """

    modes: tuple[str, ...]
    inputs: tuple[str, ...]
    why: str
    types: str = ""


_NOT_FINITE = ("NaN", "infinities", "-infinity", "not finite")
_NOT_FINITE_OR_LARGE = (*_NOT_FINITE, "largest", "out of range")
_PROGRAMS = ("xla", "kernels")
_EVERYWHERE = ("eager", *_PROGRAMS)
_ROUNDED = Difference(
    ("eager",), ("values",), "16-bit floats, which oneDNN on the CPU sums in float32, or in another order", "float16["
)
_ROUNDED_EVERYWHERE = dataclasses.replace(_ROUNDED, modes=("eager", "kernels"))
_SHAPE = Difference(("eager",), ("one more axis",), "oneDNN on the CPU checks shapes differently")
_THRESHOLD = Difference(
    ("eager", "kernels"),
    ("values",),
    "a threshold whose dtype is not that of the values. TensorFlow's kernel reads it as theirs: a float16 with the "
    "bytes after it in memory",
)
_RANGE = Difference(
    ("kernels",), ("97 in", "-7 in"), "XLA draws random numbers in both modes, and accepts empty ranges"
)
_COMPLEX = Difference(_EVERYWHERE, ("values",), _UNINITIALISED, "complex64[")
_PADDING = Difference(
    _EVERYWHERE,
    _NOT_FINITE,
    "windows on padding: IPUs sum 16-bit floats in float32 with oneDNN, which leaves padding out; 16-bit kernels "
    "multiply by its zeros",
    "float16[",
)
_SUMS = Difference(
    _EVERYWHERE,
    ("largest", "out of range"),
    "sums in another order, whose parts overflow, or cancel out except for a rounding error",
)
_UNWRITTEN = Difference(_EVERYWHERE, (*_NOT_FINITE_OR_LARGE, "denormals", "negative and zero"), _UNINITIALISED)
_PLACES = Difference(
    ("xla",),
    ("largest",),
    "TensorFlow's kernel either multiplies a root by two or divides its gradient by two, depending on the element's "
    "position; one of "
    "them overflows",
)
_RATES = Difference(
    ("xla",),
    ("largest",),
    "rates and decays of the largest number: XLA rounds a sum of products once (fused multiply-add), a kernel "
    "rounds each product",
)
_CANCELLED = Difference(
    ("xla",),
    ("largest", "out of range"),
    "products that cancel out except for a rounding error: XLA of 2.21 rounds a product together with the sum, a "
    "kernel separately",
)
_NEXT_COLUMN = Difference(
    ("xla",),
    _NOT_FINITE,
    "strides that end in the last column: oneDNN of 2.21 multiplies a column of zeros beyond the last window",
    "Conv2DBackpropInput(",
)
_POOLED_NAN = Difference(
    _PROGRAMS,
    ("NaN", "not finite"),
    "gradients of windows with NaN: it equals no output that the CPU looks for",
)
_WINDOWS = Difference(
    ("xla",),
    _NOT_FINITE,
    "gradients of windows with only NaN and -infinity: oneDNN may select an element of the padding",
)
_OWN_POOLING = Difference(
    _EVERYWHERE,
    _NOT_FINITE,
    "the CPU uses oneDNN, which ignores NaN; IPUs use TensorFlow's kernel in both execution modes",
)
_MODEL_SOFTMAX = Difference(
    _PROGRAMS,
    ("not finite",),
    "an IPU Model computes float16 in float32, whose softmax is oneDNN's: 0 next to NaN",
    "(float16[",
)
_NO_SIZE = Difference(
    ("eager",), ("zeros",), "a size of zero: oneDNN on the CPU returns an empty result, IPUs refuse it"
)

_CONVOLUTION = [_PADDING, _SUMS, *([_NEXT_COLUMN] if _IS_NEW else [])]

DIFFERENCES: dict[str, list[Difference]] = {
    **dict.fromkeys(("Conv2D", "DepthwiseConv2dNative"), _CONVOLUTION),
    **dict.fromkeys(("Conv3D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3DBackpropInputV2",
                     "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
                    [_ROUNDED, *_CONVOLUTION]),
    "Conv3DBackpropFilterV2": [_ROUNDED_EVERYWHERE, *_CONVOLUTION],
    **dict.fromkeys(("AvgPool", "AvgPool3D", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3",
                     "FusedBatchNormGrad"), [_SUMS]),
    **dict.fromkeys(("FusedBatchNormGradV2", "FusedBatchNormGradV3"), [_ROUNDED, _SUMS]),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), [_SUMS, _NO_SIZE]),
    "Cholesky": [_UNWRITTEN],
    "SqrtGrad": [_PLACES],
    **dict.fromkeys((f"ResourceApply{kind}" for kind in ("AdaMax", "Adadelta", "AddSign", "KerasMomentum",
                                                         "PowerSign")), [_RATES]),
    "MaxPoolGrad": [_POOLED_NAN],
    "MaxPool": [_WINDOWS, _SHAPE],
    "RandomUniformInt": [_RANGE],
    "SparseAdd": [_THRESHOLD],
    "XlaSelfAdjointEig": [_COMPLEX],
    "Softmax": [_MODEL_SOFTMAX],
    "SoftmaxCrossEntropyWithLogits": [_CANCELLED] if _IS_NEW else [],
    **dict.fromkeys(("MaxPool3D", "MaxPoolV2"), [_OWN_POOLING]),
}  # fmt: skip


# TensorFlow's own kernels that write out of bounds: the process ends there, or somewhere later.
OUT_OF_BOUNDS = frozenset({"SparseBincount"})  # negative values


def reason(op: str, mode: str, what: str = "", case: str = "") -> str:
    """Why an op may differ.

    Args:
        op: its type.
        mode: `eager`, `xla` or `kernels`.
        what: what is in its inputs.
        case: the case's text.

    Returns:
        The reason; empty if it may not.
    """
    if op in EMPTY and any(word in what for word in _WITHOUT_ELEMENTS):
        return EMPTY[op]
    known = (one for one in DIFFERENCES.get(op, ()) if mode in one.modes and one.types in case)
    return next((one.why for one in known if f"{what}$".startswith(one.inputs)), "")
