"""Differences that are known, and why they stay: the soak tells of them, and does not fail for them.

Of TensorFlow 2.15.1. An op that is different in another way than is listed fails.
"""

from __future__ import annotations

import dataclasses

_ONEDNN = (
    "the CPU has it by oneDNN, which adds up in another order and checks other shapes; IPUs by TensorFlow's own kernel"
)
_ROUNDED = "16-bit floats, which the CPU has oneDNN add up in float32"
_SCRATCH = (
    "the last results are scratch of the gradient: of an empty batch the CPU's oneDNN has zeros for a mean, XLA NaN, "
    "TensorFlow's own kernel writes nothing; shapes of what is unused differ. Eagerly the CPU has oneDNN's sums"
)
_SIGNS = "its definition leaves the signs open"
_TIES = (
    "inputs that are no pooling's: the CPU looks for the place with the given output, XLA for the largest; ties, NaN, "
    "of which each takes another; sizes over batches and shapes that XLA does not check"
)
_THRESHOLD = (
    "a threshold of another type than the values, which TensorFlow's kernel reads as theirs without a look at its "
    "type: a float16 with what is behind it in memory"
)
_NARROW = "XLA's compiler stops at 16-bit floats"
_UNINITIALISED = "results that nothing writes"
_UNCHECKED = "values out of range that only TensorFlow's own kernel looks at"
_COMPLEX = "XLA's compiler has no clamp of complex numbers"
_NOT_ONE = "in a function the CPU has zeros, eagerly ones"
_RANDOM = "random numbers are XLA's by kernels too, and XLA takes any range: TensorFlow's own kernel alone refuses one"
_EMPTY = (
    "the CPU's oneDNN gives an empty input's shape for the result, (0, 4, 4, 3) where filters have 5 channels, and "
    "refuses empty filters"
)

# By op: the ways, and why.
DIFFERENCES: dict[str, tuple[frozenset[str], str]] = {
    **{op: (frozenset({"eager"}), _ROUNDED)
       for op in ("Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3DBackpropInputV2", "Softmax",
                  "DepthwiseConv2dNativeBackpropInput")},
    **{op: (frozenset({"eager", "kernels"}), _ONEDNN)
       for op in ("Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter", "MaxPool")},
    **{op: (frozenset({"eager", "xla", "kernels"}), _SCRATCH)
       for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNormGrad",
                  "FusedBatchNormGradV2", "FusedBatchNormGradV3")},
    **{op: (frozenset({"eager", "xla", "kernels"}), f"{_EMPTY}; {_ROUNDED}")
       for op in ("Conv2D", "Conv3D", "DepthwiseConv2dNative")},
    "QuantizedAvgPool": (frozenset({"eager"}), _ONEDNN),
    **{op: (frozenset({"eager", "xla", "kernels"}), "the CPU has it by oneDNN, which gives zeros for an empty gradient")
       for op in ("AvgPoolGrad", "AvgPool3DGrad")},
    **{op: (frozenset({"xla", "kernels"}), _TIES)
       for op in ("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad", "MaxPool3DGrad", "MaxPool3D", "MaxPoolV2")},
    "Svd": (frozenset({"xla"}), _SIGNS),
    **{op: (frozenset({"xla"}), _NARROW) for op in ("LRN", "LRNGrad")},
    **{op: (frozenset({"kernels"}), _RANDOM) for op in ("RandomUniformInt", "StatelessRandomUniformIntV2")},
    "ClipByValue": (frozenset({"xla"}), _COMPLEX),
    "DataFormatDimMap": (frozenset({"xla"}), _UNCHECKED),
    "OnesLike": (frozenset({"xla", "kernels"}), _NOT_ONE),
    **{op: (frozenset({"eager", "xla", "kernels"}), _UNINITIALISED) for op in ("RFFT3D", "XlaSelfAdjointEig")},
    "MatrixSolveLs": (frozenset({"eager"}), _UNINITIALISED),  # of matrices without rows
    "SparseAdd": (frozenset({"eager", "kernels"}), _THRESHOLD),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Edge:
    """A difference for elements at the edges of their type, which TensorFlow leaves open.

    Args:
        ways: in which it is.
        elements: how the names of the cases begin, of `hostile.EDGES`; a `$` is a name's end.
        why: the reason.
    """

    ways: tuple[str, ...]
    elements: tuple[str, ...]
    why: str


_NOT_FINITE = ("NaN", "infinities", "-infinity", "not finite")
_NOT_FINITE_OR_LARGE = (*_NOT_FINITE, "largest", "out of range")
_PROGRAMS = ("xla", "kernels")
_TRANSFORMS = Edge(
    _PROGRAMS,
    _NOT_FINITE_OR_LARGE,
    "each result is a sum over all inputs: which of them NaN, infinities and partial sums that are out of range reach "
    "depends on the algorithm of the transform",
)
_PADDING = Edge(
    _PROGRAMS,
    _NOT_FINITE_OR_LARGE,
    "windows that lie on padding: whether zeros of the padding are multiplied, with infinities too, depends on the "
    "algorithm; oneDNN, XLA and TensorFlow's own kernel differ among themselves",
)
_FACTORS = Edge(
    _PROGRAMS,
    (*_NOT_FINITE_OR_LARGE, "negative and zero"),
    "a matrix that has no such factors, or out of range: what is left of it depends on the algorithm",
)
_UNSORTED = Edge(("xla",), _NOT_FINITE_OR_LARGE, "its definition wants sorted inputs, and NaN and these are not")
_SUMS = Edge(_PROGRAMS, ("largest",), "sums whose parts leave the type's range, in another order")
_CONTRACTED = Edge(
    ("xla",),
    _NOT_FINITE_OR_LARGE,
    "a difference of products: XLA rounds once (fused multiply-add), a kernel each product",
)

_SEGMENTS = Edge(
    ("xla",),
    _NOT_FINITE,
    "whether NaN is the largest depends in TensorFlow's kernels on the order of rows and on an element's place",
)

_UNWRITTEN = Edge(("eager",), (*_NOT_FINITE_OR_LARGE, "denormals", "negative and zero"), _UNINITIALISED)
_PLACES = Edge(
    ("xla",),
    ("largest",),
    "TensorFlow's kernel doubles a root or halves its gradient, one of which is out of range, by an element's place",
)
_BOUNDS = Edge(
    ("xla",),
    ("NaN$", "NaN in input 1", "NaN in input 2", "infinities in input", "largest in input", "out of range in input"),
    "its documentation wants a lower bound that is not larger than the upper one, and numbers for both",
)

EDGES: dict[str, list[Edge]] = {
    **dict.fromkeys(("SegmentMax", "SegmentMin", "UnsortedSegmentMax", "UnsortedSegmentMin", "ResourceScatterMax",
                     "ResourceScatterMin", "TensorScatterMax", "TensorScatterMin"), [_SEGMENTS]),
    **dict.fromkeys(("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "RFFT", "RFFT2D", "IRFFT", "IRFFT2D",
                     "IRFFT3D"), [_TRANSFORMS]),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2",
                     "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"), [_PADDING]),
    **dict.fromkeys(("Cholesky", "CholeskyGrad", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant",
                     "MatrixSolve", "MatrixTriangularSolve", "Qr", "SelfAdjointEigV2", "MatrixSquareRoot"), [_FACTORS]),
    **dict.fromkeys(("LowerBound", "UpperBound"), [_UNSORTED]),
    **dict.fromkeys(("AvgPool", "AvgPool3D", "AdjustContrastv2"), [_SUMS]),
    "Cross": [_CONTRACTED],
    "Cholesky": [_FACTORS, _UNWRITTEN],
    "AvgPool3D": [dataclasses.replace(_SUMS, ways=("eager", *_PROGRAMS))],
    "SqrtGrad": [_PLACES],
    "ClipByValue": [_BOUNDS],
}  # fmt: skip


# TensorFlow's own kernels that write out of bounds: the process ends there, or somewhere later.
OUT_OF_BOUNDS = frozenset({"SparseBincount"})  # negative values


def reason(op: str, way: str, what: str = "") -> str:
    """Why an op may differ.

    Args:
        op: its type.
        way: `eager`, `xla` or `kernels`.
        what: what its case looks at.

    Returns:
        The reason; empty where it may not.
    """
    ways, why = DIFFERENCES.get(op, (frozenset(), ""))
    if way in ways:
        return why
    return next((one.why for one in EDGES.get(op, ()) if way in one.ways and f"{what}$".startswith(one.elements)), "")
