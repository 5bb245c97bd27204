"""Differences that are known, and why they stay: the soak reports them, and does not fail.

Differences of TensorFlow 2.15.1, two of them also of 2.21.0. An op with a difference that is not listed fails.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from soak.ops import hostile

_IS_NEW = int(tf.version.VERSION.split(".")[1]) >= 21

_ONEDNN = "the CPU uses oneDNN, which sums in another order and checks shapes differently; IPUs use TensorFlow's kernel"
_ROUNDED = "16-bit floats, which oneDNN on the CPU sums in float32"
_NO_BATCH = (
    "the mean of an empty batch is zero in oneDNN and NaN in XLA; TensorFlow's kernel does not write it. Eagerly "
    "the CPU uses oneDNN"
)
_THRESHOLD = (
    "a threshold whose dtype is not that of the values. TensorFlow's kernel reads it as theirs: a float16 with the "
    "bytes after it in memory"
)
_UNINITIALISED = "results that nothing writes"
_NOT_ONE = "the CPU returns zeros in a function, ones eagerly"
_RANDOM = "random numbers are XLA's in both modes, and XLA accepts every range; TensorFlow's kernel refuses empty ones"
_EMPTY = (
    "for an empty input, oneDNN on the CPU returns the input's shape, such as (0, 4, 4, 3) with 5 filters. It "
    "refuses empty filters"
)

# By op: the modes, and why. Not of elements at the edges of their type, nor of tensors without elements, which have
# their own reasons below.
DIFFERENCES: dict[str, tuple[frozenset[str], str]] = {
    **{op: (frozenset({"eager"}), _ROUNDED)
       for op in ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropInputV2",
                  "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
                  "DepthwiseConv2dNativeBackpropInput")},
    **{op: (frozenset({"eager", "kernels"}), _ONEDNN) for op in ("Conv3DBackpropFilterV2", "MaxPool")},
    **{op: (frozenset({"eager"}), _ONEDNN)
       for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")},
    **{op: (frozenset({"kernels"}), _RANDOM) for op in ("RandomUniformInt", "StatelessRandomUniformIntV2")},
    "OnesLike": (frozenset({"xla", "kernels"}), _NOT_ONE),
    "XlaSelfAdjointEig": (frozenset({"eager", "xla", "kernels"}), _UNINITIALISED),
    "SparseAdd": (frozenset({"eager", "kernels"}), _THRESHOLD),
}  # fmt: skip

# The same of tensors without elements, in every mode.
EMPTY: dict[str, str] = {
    **dict.fromkeys((f"FusedBatchNorm{kind}" for kind in ("", "V2", "V3", "Grad", "GradV2", "GradV3")), _NO_BATCH),
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), _EMPTY),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), "the CPU uses oneDNN, which returns zeros for an empty gradient"),
    **dict.fromkeys((f"{kind}{axes}" for kind in ("RFFT", "IRFFT") for axes in ("", "2D", "3D")), _UNINITIALISED),
    "MatrixSolveLs": _UNINITIALISED,  # of matrices without rows
}
_WITHOUT_ELEMENTS = ("empty", "zero-size dimension")


@dataclasses.dataclass(frozen=True)
class Edge:
    """A difference for elements at the edges of their type, which TensorFlow leaves open.

    Args:
        modes: in which it is.
        elements: beginnings of the names of cases in `hostile.EDGES`; a `$` is the end of a name.
        why: the reason.
        types: a part of the description of the case's types.
    """

    modes: tuple[str, ...]
    elements: tuple[str, ...]
    why: str
    types: str = ""


_NOT_FINITE = ("NaN", "infinities", "-infinity", "not finite")
_NOT_FINITE_OR_LARGE = (*_NOT_FINITE, "largest", "out of range")
_PROGRAMS = ("xla", "kernels")
_EVERYWHERE = ("eager", *_PROGRAMS)
_PADDING = Edge(
    _EVERYWHERE,
    _NOT_FINITE,
    "windows on padding: IPUs sum 16-bit floats in float32 with oneDNN, which leaves padding out; 16-bit kernels "
    "multiply by its zeros",
    "float16[",
)
_SUMS = Edge(
    _EVERYWHERE,
    ("largest", "out of range"),
    "sums in another order, whose parts overflow, or cancel out except for a rounding error",
)
_UNWRITTEN = Edge(_EVERYWHERE, (*_NOT_FINITE_OR_LARGE, "denormals", "negative and zero"), _UNINITIALISED)
_PLACES = Edge(
    ("xla",),
    ("largest",),
    "TensorFlow's kernel either multiplies a root by two or divides its gradient by two, depending on the element's "
    "position; one of "
    "them overflows",
)
_RATES = Edge(
    ("xla",),
    ("largest",),
    "rates and decays of the largest number: XLA rounds a sum of products once (fused multiply-add), a kernel "
    "rounds each product",
)
_CANCELLED = Edge(
    ("xla",),
    ("largest", "out of range"),
    "products that cancel out except for a rounding error: XLA of 2.21 rounds a product together with the sum, a "
    "kernel separately",
)
_NEXT_COLUMN = Edge(
    ("xla",),
    _NOT_FINITE,
    "strides that end in the last column: oneDNN of 2.21 multiplies a column of zeros beyond the last window",
    "Conv2DBackpropInput(",
)
_NO_POOLING = Edge(
    _PROGRAMS,
    ("",),
    "outputs that the inputs do not give, and ties: the CPU looks for the given output, XLA for the largest element",
)
_POOLED_NAN = Edge(
    _PROGRAMS,
    ("NaN", "not finite"),
    "gradients of windows with NaN: it equals no output that the CPU looks for",
)
_WINDOWS = Edge(
    ("xla",),
    _NOT_FINITE,
    "gradients of windows with only NaN and -infinity: oneDNN may select an element of the padding",
)
_OWN_POOLING = Edge(
    _EVERYWHERE,
    _NOT_FINITE,
    "the CPU uses oneDNN, which ignores NaN; IPUs use TensorFlow's kernel in both execution modes",
)
_MODEL_SOFTMAX = Edge(
    _PROGRAMS,
    ("not finite",),
    "an IPU Model computes float16 in float32, whose softmax is oneDNN's: 0 next to NaN",
    "(float16[",
)
_NO_SIZE = Edge(("eager",), ("zeros",), "a size of zero: oneDNN on the CPU returns an empty result, IPUs refuse it")

EDGES: dict[str, list[Edge]] = {
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "Conv2DBackpropFilter",
                     "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropInput",
                     "DepthwiseConv2dNativeBackpropFilter"), [_PADDING, _SUMS, *([_NEXT_COLUMN] if _IS_NEW else [])]),
    **dict.fromkeys(("AvgPool", "AvgPool3D", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3",
                     "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), [_SUMS]),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), [_SUMS, _NO_SIZE]),
    "Cholesky": [_UNWRITTEN],
    "SqrtGrad": [_PLACES],
    **dict.fromkeys((f"ResourceApply{kind}" for kind in ("AdaMax", "Adadelta", "AddSign", "KerasMomentum",
                                                         "PowerSign")), [_RATES]),
    "MaxPoolGrad": [_POOLED_NAN],
    "MaxPoolGradGrad": [_NO_POOLING],
    "MaxPool": [_WINDOWS],
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
        what: the purpose of its case.
        case: the case's text.

    Returns:
        The reason; empty if it may not.
    """
    if op in EMPTY and any(word in what for word in _WITHOUT_ELEMENTS):
        return EMPTY[op]
    modes, why = DIFFERENCES.get(op, (frozenset(), ""))
    if mode in modes and not what.startswith(tuple(hostile.EDGES)):
        return why
    edges = (one for one in EDGES.get(op, ()) if mode in one.modes and one.types in case)
    return next((one.why for one in edges if f"{what}$".startswith(one.elements)), "")
