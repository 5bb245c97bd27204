"""Finds ops that only TensorFlow's kernels compute correctly; their programs run in mode `kernels`.

Sorting orders NaN, and zeros of both signs, differently. A list of tensors that grows stays as long as it is in XLA's
programs, which write to its last element instead. Others are fake quantisation, special functions, images, complex
functions, Fourier transforms, factors of matrices and segments of NaN, infinity and extreme numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.passes.assertions import Describe
from tf_ipu_shim.compiler.xla_semantics import padded_windows
from tf_ipu_shim.compiler.xla_semantics.float16_overflow import is_update
from tf_ipu_shim.compiler.xla_semantics.float32_updates import is_copy
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_FLOATING = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE})
_NARROW = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16})
_INTEGERS = frozenset(getattr(types_pb2, f"DT_{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64))
_COMPLEX = frozenset({types_pb2.DT_COMPLEX64, types_pb2.DT_COMPLEX128})
_SORTING = ("TopK", "TopKV2")
_FAKE_QUANTISATION = frozenset(
    f"FakeQuantWithMinMax{kind}{end}" for kind in ("Args", "Vars", "VarsPerChannel") for end in ("", "Gradient")
)
_SPECIAL_FUNCTIONS = (
    "Betainc",
    "CumulativeLogsumexp",
    "Igamma",
    "IgammaGradA",
    "Igammac",
    "Ndtri",
    "Polygamma",
    "Zeta",
)
_COLOURS = ("AdjustContrastv2", "AdjustHue", "AdjustSaturation", "HSVToRGB", "RGBToHSV")
# A convolution in XLA's programs: what is multiplied by 0 may be NaN.
_IMAGES = ("ExtractImagePatches", "ResizeBilinear", "ResizeBilinearGrad", "ResizeNearestNeighborGrad")
_EXTREMES = tuple(f"{kind}{end}" for kind in ("Segment", "UnsortedSegment", "TensorScatter") for end in ("Max", "Min"))
_COMPARISONS = (*_EXTREMES, "ClipByValue")
# Two-dimensional float32 ones are oneDNN's in mode `kernels`, which can be written for XLA. TensorFlow's own op takes
# the first element of a window if it is NaN. For gradients of gradients XLA compares elements as bfloat16.
_SECOND_GRADIENTS = ("MaxPool3DGradGrad", "MaxPoolGradGrad", "MaxPoolGradGradV2")
_POOLING = ("MaxPool3D", "MaxPool3DGrad", "MaxPoolGradV2", "MaxPoolV2", *_SECOND_GRADIENTS)
# Keep a weight where the kernels' is 0 or NaN: after a gradient of NaN, or one whose square is out of range.
_OPTIMIZERS = ("ResourceApplyCenteredRMSProp", "ResourceApplyFtrl", "ResourceApplyFtrlV2", "ResourceApplyRMSProp")
# Numbers with an infinite or NaN part, and the sides of branch cuts.
_COMPLEX_FUNCTIONS = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "ComplexAbs", "Cos", "Cosh", "Div", "DivNoNan", "Exp", "Expm1",
    "Inv", "Log", "Log1p", "Pow", "Prod", "RealDiv", "Reciprocal", "Rsqrt", "RsqrtGrad", "Sigmoid", "SigmoidGrad",
    "Sign", "Sin", "Sinh", "Sqrt", "SqrtGrad", "Square", "Tan", "Tanh", "TanhGrad", "Xdivy", "Xlog1py", "Xlogy",
)  # fmt: skip
_FOURIER = frozenset(f"{kind}{axes}" for kind in ("FFT", "IFFT", "RFFT", "IRFFT") for axes in ("", "2D", "3D"))
_FACTORS = frozenset(
    {
        "Cholesky", "LogMatrixDeterminant", "MatrixDeterminant", "MatrixInverse", "MatrixSolve",
        "MatrixTriangularSolve", "Qr", "SelfAdjointEigV2", "Svd", "TridiagonalMatMul", "TridiagonalSolve",
    }
)  # fmt: skip
_OTHERS = frozenset({"Angle", "ApproxTopK", "DataFormatDimMap", "LowerBound", "UpperBound"})
_WITHOUT_CONVERSION = frozenset({"TensorListResize"})  # of the gradients of lists that grow
# Fake quantisation has no attribute for its type.
_OF_ANY_TYPE = _FAKE_QUANTISATION | _FOURIER | _FACTORS | _OTHERS | _WITHOUT_CONVERSION
_TYPES: dict[str, frozenset[int]] = {
    **dict.fromkeys((*_SORTING, *_SPECIAL_FUNCTIONS, *_COLOURS, *_IMAGES, *_COMPARISONS, *_OPTIMIZERS), _FLOATING),
    **dict.fromkeys(
        ("ResourceScatterMax", "ResourceScatterMin", "ReciprocalGrad", "Cross", "LRNGrad", "LinSpace"), _FLOATING
    ),
    **dict.fromkeys(_POOLING, _FLOATING),
    **dict.fromkeys(("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"), _FLOATING),
    **dict.fromkeys(("LRN", "MaxPoolGrad"), _NARROW),
    "Mean": _INTEGERS,
    "ResizeNearestNeighbor": _INTEGERS,
    **dict.fromkeys(_COMPLEX_FUNCTIONS, _COMPLEX),
    "ClipByValue": _FLOATING | _COMPLEX,
}
_RESIZES = "resize_if_index_out_of_bounds"
_CONVERSION_THREW = "an op's conversion threw"  # `csrc/launches/conversion_errors`
_OF_LISTS = re.compile(r"dynamic slice dimension|tensor list|TensorList|list element", re.IGNORECASE)


def has_no_conversion(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether XLA lacks an op of a program that runs in mode `kernels`."""
    return node.op in _WITHOUT_CONVERSION or is_copy(node)


def describe_kernel_only_ops(
    request: ProgramRequest, reached: Iterable[str], describe: Describe, has_copies: bool = False
) -> list[str]:
    """Returns descriptions of such ops of a program."""
    return [
        describe(name, node)
        for name in reached
        for node in request.library[name].node_def
        if _only_by_kernels(node) or (has_copies and is_update(node))
    ]


def explains_error(request: ProgramRequest, message: str) -> bool:
    """Returns whether an XLA error is about an op that the program runs in mode `kernels` instead."""
    if _CONVERSION_THREW in message:
        return True
    functions = Functions(request.library, request.function)
    nodes = (node.proto for name in functions.reached() for node in functions[name].nodes)
    return bool(_OF_LISTS.search(message)) and any(map(_grows, nodes))


def _grows(node: node_def_pb2.NodeDef) -> bool:
    return node.op == "TensorListSetItem" and node.attr[_RESIZES].b


def _only_by_kernels(node: node_def_pb2.NodeDef) -> bool:
    if _grows(node) or is_copy(node) or padded_windows.multiplies_other_zeros(node):
        return True
    if types := _TYPES.get(node.op):
        return node.attr["dtype" if "dtype" in node.attr else "T"].type in types
    return node.op in _OF_ANY_TYPE
