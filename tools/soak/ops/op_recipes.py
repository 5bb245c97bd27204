"""Inputs that no op definition describes: values by an argument's name, attributes, whole inputs, skipped ops."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Valid input of an op.

    Args:
        inputs: for each input of the definition a shape (a tuple), a value, or a list of either for several tensors.
        attributes: attributes that cannot be guessed.
    """

    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)


# Of integers, by the argument's name, the likeliest first.
VALUES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("axis", "dim", "dimension", "concat_dim", "split_dim", "batch_dim", "seq_dim", "reverse_dim"), (0, 1, [0])
    ),
    **dict.fromkeys(("reduction_indices", "reduction_axes"), ([0], 0, [1])),
    **dict.fromkeys(("shape", "dims", "output_shape", "dense_shape", "input_sizes", "filter_sizes"),
                    ([2, 3], [3, 2], [6], [1, 4, 4, 3])),
    **dict.fromkeys(("size", "output_size", "crop_size"), (3, [3, 3], [2, 3], [1, 1])),
    **dict.fromkeys(("paddings", "crops"), ([[0, 1], [1, 0]], [[1, 1]], [[0, 0], [0, 0]], [[0, 0]] * 4)),
    **dict.fromkeys(("indices", "segment_ids", "labels", "targets"), ([0, 1], [[0, 1]], [0, 1, 1, 2], [[0], [1]], 0)),
    **dict.fromkeys(("num_segments", "output_dim0", "k", "n", "depth", "num_samples", "num_classes", "nbins"), (3, 2)),
    **dict.fromkeys(("seed", "seed2"), ([1, 2], 1, [1, 2, 3])),
    **dict.fromkeys(("begin",), ([0, 0], [0], [1, 0])),
    **dict.fromkeys(("end",), ([2, 2], [2], [1, 1])),
    **dict.fromkeys(("strides",), ([1, 1], [1], [1, 1, 1, 1])),
    "fft_length": ([4],),
    "multiples": ([1, 2], [2], [1, 1, 2]),
    "perm": ([1, 0], [0], [0, 2, 1]),
    "shift": (1, [1]),
    "block_shape": ([2], [1, 2], [2, 2]),
    "size_splits": ([1, 1], [1, 2]),
    "alg": (1, 2),
    "counter": ([1, 2], [0]),
    "key": ([3],),
    "max_output_size": (2,),
    "minlength": (3,), "maxlength": (5,),
    "lower": (0,), "upper": (2,), "num_lower": (1, 0), "num_upper": (1, 0),
    "start": (0,), "limit": (5,), "delta": (1,), "num": (4,),
    "input_min": (0,), "input_max": (1,),
    "minval": (0,), "maxval": (9,),
}  # fmt: skip

# Those of these that an op works on; a script writes the others down, and XLA must know them when it compiles.
DATA = frozenset({"indices", "segment_ids", "labels", "targets"})

ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "ksize": ([1, 2, 2, 1], [1, 2, 2, 2, 1], [1, 1, 1, 1]),
    "ksizes": ([1, 2, 2, 1], [1, 2, 2, 2, 1]),
    "strides": ([1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 2, 2, 1]),
    "rates": ([1, 1, 1, 1],),
    "padding": ("SAME", "VALID"),
    "pooling_ratio": ([1.0, 1.44, 1.44, 1.0],),
    "N": (2, 1),
    "num": (2, 3),
    "block_size": (2,),
    "num_split": (2, 1, 3),
    "axis": (0, 1),
    "value_index": (0,),
    "boundaries": ([0.25, 0.5],),
    "replication_factor": (1,),
}

# Results of ops whose others are scratch memory of their gradients, which no script takes.
RESULTS = {f"FusedBatchNorm{kind}": 3 for kind in ("", "V2", "V3", "Grad", "GradV2", "GradV3")}

# Ops that begin so take a handle of a variable.
TAKES_VARIABLES = (
    "ResourceApply", "ResourceSparseApply", "ResourceScatter", "ResourceGather", "ReadVariableOp", "AssignVariableOp",
    "AssignAddVariableOp", "AssignSubVariableOp", "VariableShape", "ResourceStridedSliceAssign",
    "VarIsInitializedOp",
)  # fmt: skip

_FILES = "reads or writes files"
_CALLS = "runs functions: random programs have those"
_BETWEEN = "waits for another process or thread"
_PARTS = "part of a graph's control flow, which does not run separately"
_TESTS = "of TensorFlow's own tests"
_BARRIERS = "holds state of the host process"
NOT_RUN: dict[str, str] = {
    "Abort": "ends the process",
    **dict.fromkeys(
        ("Ipu*", "IPU*", "ApplicationCall", "ApplicationRuntime", "PopDatastream*", "ReplicationIndex"),
        "an op of this plugin, which has tests"),
    **dict.fromkeys(
        ("Save*", "Restore*", "ReadFile", "WriteFile", "MatchingFiles", "MergeV2Checkpoints", "LoadAndRemapMatrix",
         "RecordInput", "FileSystemSetConfiguration", "ImmutableConst", "GenerateVocabRemapping", "DumpTensor"),
        _FILES),
    **dict.fromkeys(
        ("Send", "Recv", "Collective*", "Batch", "Unbatch*", "XlaSend", "XlaRecv", "SleepOp", "SleepIdentityOp"),
        _BETWEEN),
    **dict.fromkeys(("Merge", "Switch", "LoopCond", "Placeholder*", "FakeParam", "HostConst", "For", "Enter", "Exit",
                     "NextIteration"), _PARTS),
    **dict.fromkeys(("PyFunc*", "EagerPyFunc", "SymbolicGradient", "TfLiteSubgraphExecute", "XlaLaunch*"), _CALLS),
    **dict.fromkeys(("TestAttr", "ConstructionFails", "KernelLabel*", "Old", "Fact", "DeepCopy"), _TESTS),
    **dict.fromkeys(("Map*", "OrderedMap*", "Stage*", "Unstage", "GetSession*", "DeleteSessionTensor", "TensorArray*",
                     "AddManySparseToTensorsMap", "AddSparseToTensorsMap", "TakeManySparseFromTensorsMap"), _BARRIERS),
    **dict.fromkeys(("Timestamp", "GetDeadline", "Debug*", "Copy", "CopyHost", "DevicePlacementOp", "DeviceIndex"),
                    "describes the process, not its input"),
}  # fmt: skip

# Ops that draw new numbers: shapes and types are compared.
RANDOM = ("Random", "Multinomial", "ParameterizedTruncatedNormal", "TruncatedNormal", "Empty", "CandidateSampler",
          "NonDeterministicInts", "SampleDistortedBoundingBox", "Skipgram", "Fractional", "StochasticCastToInt",
          "StatelessTruncatedNormal", "StatelessShuffle", "KmeansPlusPlus", "KMC2",
          "XlaRngBitGenerator")  # fmt: skip

_IMAGE = (1, 4, 4, 3)
# An image and a volume of different numbers, and the largest of each window, with its index.
_DISTINCT = np.random.default_rng(0).permutation(48).reshape(1, 4, 4, 3) / 64
_WINDOWS, _INDICES = (
    values.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(1, 2, 2, 3, 4)
    for values in (_DISTINCT, np.arange(48))
)
_LARGEST = _WINDOWS.max(-1)
_PLACES = np.take_along_axis(_INDICES, _WINDOWS.argmax(-1)[..., None], -1)[..., 0]
_SOLID = np.random.default_rng(0).permutation(128).reshape(1, 4, 4, 4, 2) / 128
_SOLID_LARGEST = _SOLID.reshape(1, 2, 2, 2, 2, 2, 2, 2).max((2, 4, 6))
_VOLUME = (1, 4, 4, 4, 2)
_CONV3D = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
_POOL3D = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
_CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_NORM = ((3,), (3,), (3,), (3,))
_DILATE = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
_SPARSE = ([[0, 1], [1, 2]], (2,), [2, 3])
_CELL = ((2, 4), (2, 4), (7, 16), (4,), (4,), (4,), (16,))
_BOXES = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]]
_ROWS = ((4, 3), [0, 1, 3], [0, 0, 1])

RECIPES: dict[str, list[Recipe]] = {
    "Conv2D": [Recipe([_IMAGE, (2, 2, 3, 5)], _CONV), Recipe([_IMAGE, (3, 3, 3, 2)], {**_CONV, "padding": "VALID"})],
    "Conv2DBackpropInput": [Recipe([[1, 4, 4, 3], (2, 2, 3, 5), (1, 4, 4, 5)], _CONV)],
    "Conv2DBackpropFilter": [Recipe([_IMAGE, [2, 2, 3, 5], (1, 4, 4, 5)], _CONV)],
    "Conv3D": [Recipe([_VOLUME, (2, 2, 2, 2, 3)], _CONV3D)],
    "Conv3DBackpropInputV2": [Recipe([[1, 4, 4, 4, 2], (2, 2, 2, 2, 3), (1, 4, 4, 4, 3)], _CONV3D)],
    "Conv3DBackpropFilterV2": [Recipe([_VOLUME, [2, 2, 2, 2, 3], (1, 4, 4, 4, 3)], _CONV3D)],
    "DepthwiseConv2dNative": [Recipe([_IMAGE, (2, 2, 3, 2)], _CONV)],
    "DepthwiseConv2dNativeBackpropInput": [Recipe([[1, 4, 4, 3], (2, 2, 3, 2), (1, 4, 4, 6)], _CONV)],
    "DepthwiseConv2dNativeBackpropFilter": [Recipe([_IMAGE, [2, 2, 3, 2], (1, 4, 4, 6)], _CONV)],
    "MaxPool": [Recipe([_IMAGE], _POOL)],
    "AvgPool": [Recipe([_IMAGE], _POOL)],
    "AvgPoolGrad": [Recipe([[1, 4, 4, 3], (1, 2, 2, 3)], _POOL)],
    "MaxPoolGrad": [Recipe([_DISTINCT, _LARGEST, (1, 2, 2, 3)], _POOL)],
    "MaxPoolGradGrad": [Recipe([_DISTINCT, _LARGEST, _IMAGE], _POOL)],
    "MaxPoolV2": [Recipe([_IMAGE, [1, 2, 2, 1], [1, 2, 2, 1]], {"padding": "SAME"})],
    "MaxPoolGradV2": [
        Recipe([_DISTINCT, _LARGEST, (1, 2, 2, 3), [1, 2, 2, 1], [1, 2, 2, 1]], {"padding": "SAME"})
    ],
    "MaxPoolWithArgmax": [Recipe([_IMAGE], _POOL)],
    "MaxPoolGradWithArgmax": [Recipe([_DISTINCT, (1, 2, 2, 3), _PLACES], _POOL)],
    **{f"Quantized{kind}Pool": [Recipe([_IMAGE, -1.0, 1.0], _POOL)] for kind in ("Avg", "Max")},
    **{f"Quantized{kind}": [Recipe([(2, 3), (2, 3), -1.0, 1.0, -1.0, 1.0])] for kind in ("Add", "Mul")},
    **{f"Quantized{kind}": [Recipe([(2, 3), -1.0, 1.0])] for kind in ("Relu", "Relu6")},
    "QuantizedMatMul": [Recipe([(2, 3), (3, 4), -1.0, 1.0, -1.0, 1.0])],
    "QuantizedConv2D": [Recipe([_IMAGE, (2, 2, 3, 5), -1.0, 1.0, -1.0, 1.0], _CONV)],
    "QuantizedInstanceNorm": [Recipe([_IMAGE, -1.0, 1.0])],
    "Dequantize": [Recipe([(2, 3), -1.0, 1.0])],
    "MaxPool3D": [Recipe([_VOLUME], _POOL3D)],
    "AvgPool3D": [Recipe([_VOLUME], _POOL3D)],
    "AvgPool3DGrad": [Recipe([[1, 4, 4, 4, 2], _VOLUME], _POOL3D)],
    "MaxPool3DGrad": [
        Recipe([_SOLID, _SOLID_LARGEST, (1, 2, 2, 2, 2)], {**_POOL3D, "strides": [1, 2, 2, 2, 1]})
    ],
    "MaxPool3DGradGrad": [Recipe([_SOLID, _SOLID_LARGEST, _VOLUME], {**_POOL3D, "strides": [1, 2, 2, 2, 1]})],
    "FusedBatchNorm": [Recipe([_IMAGE, (3,), (3,), (0,), (0,)]), Recipe([_IMAGE, *_NORM], {"is_training": False})],
    "FusedBatchNormV2": [Recipe([_IMAGE, (3,), (3,), (0,), (0,)]), Recipe([_IMAGE, *_NORM], {"is_training": False})],
    "FusedBatchNormV3": [Recipe([_IMAGE, (3,), (3,), (0,), (0,)]), Recipe([_IMAGE, *_NORM], {"is_training": False})],
    "FusedBatchNormGrad": [Recipe([_IMAGE, _IMAGE, (3,), (3,), (3,)])],
    "FusedBatchNormGradV2": [Recipe([_IMAGE, _IMAGE, (3,), (3,), (3,)])],
    "FusedBatchNormGradV3": [Recipe([_IMAGE, _IMAGE, (3,), (3,), (3,), (3,)])],
    "Dilation2D": [Recipe([_IMAGE, (2, 2, 3)], _DILATE)],
    "Dilation2DBackpropInput": [Recipe([_IMAGE, (2, 2, 3), _IMAGE], _DILATE)],
    "Dilation2DBackpropFilter": [Recipe([_IMAGE, (2, 2, 3), _IMAGE], _DILATE)],
    "Einsum": [Recipe([[(2, 3), (3, 4)]], {"equation": "ab,bc->ac"})],
    "XlaEinsum": [Recipe([(2, 3), (3, 4)], {"equation": "ab,bc->ac"})],
    "MatMul": [Recipe([(2, 3), (3, 4)]), Recipe([(3, 2), (4, 3)], {"transpose_a": True, "transpose_b": True})],
    "BatchMatMul": [Recipe([(2, 2, 3), (2, 3, 4)])],
    "BatchMatMulV2": [Recipe([(2, 2, 3), (3, 4)])],
    "Cholesky": [Recipe([[[4.0, 1.0], [1.0, 3.0]]])],
    "CholeskyGrad": [Recipe([[[2.0, 0.0], [0.5, 1.5]], (2, 2)])],
    "MatrixInverse": [Recipe([[[4.0, 1.0], [1.0, 3.0]]])],
    "MatrixDeterminant": [Recipe([[[4.0, 1.0], [1.0, 3.0]]])],
    "MatrixSolve": [Recipe([[[4.0, 1.0], [1.0, 3.0]], (2, 3)])],
    "MatrixTriangularSolve": [Recipe([[[4.0, 0.0], [1.0, 3.0]], (2, 3)])],
    "GatherV2": [Recipe([(4, 3), [0, 2, 3], 0]), Recipe([(4, 3), [[0], [2]], 1])],
    "GatherNd": [Recipe([(4, 3), [[0, 1], [3, 2]]])],
    "ScatterNd": [Recipe([[[0], [2]], (2, 3), [4, 3]])],
    **{f"TensorScatter{kind}": [Recipe([(4, 3), [[0], [2]], (2, 3)])]
       for kind in ("Add", "Sub", "Max", "Min", "Update")},
    **{f"ResourceScatter{kind}": [Recipe([(4, 3), [0, 2], (2, 3)])]
       for kind in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")},
    "ResourceGather": [Recipe([(4, 3), [0, 2]])],
    "ResourceGatherNd": [Recipe([(4, 3), [[0, 1], [2, 2]]])],
    "ReadVariableOp": [Recipe([(4, 3)], {"dtype": 1})],
    "AssignVariableOp": [Recipe([(4, 3), (4, 3)], {"dtype": 1})],
    "AssignAddVariableOp": [Recipe([(4, 3), (4, 3)], {"dtype": 1})],
    "AssignSubVariableOp": [Recipe([(4, 3), (4, 3)], {"dtype": 1})],
    **{f"Segment{kind}": [Recipe([(4, 3), [0, 0, 1, 2]])] for kind in ("Sum", "Mean", "Max", "Min", "Prod")},
    **{f"UnsortedSegment{kind}": [Recipe([(4, 3), [2, 0, 1, 0], 3])] for kind in ("Sum", "Max", "Min", "Prod")},
    **{f"SparseSegment{kind}": [Recipe(_ROWS)] for kind in ("Sum", "Mean", "SqrtN")},
    "SparseToDense": [Recipe([[[0, 1], [1, 2]], [2, 3], (2,), ()])],
    "SparseTensorDenseMatMul": [Recipe([*_SPARSE, (3, 4)])],
    "SparseTensorDenseAdd": [Recipe([*_SPARSE, (2, 3)])],
    "SparseSoftmax": [Recipe(_SPARSE)],
    "SparseReorder": [Recipe(_SPARSE)],
    "SparseReduceSum": [Recipe([*_SPARSE, [0]])],
    "SparseReduceMax": [Recipe([*_SPARSE, [0]])],
    **{f"SparseDenseCwise{kind}": [Recipe([*_SPARSE, (2, 3)])] for kind in ("Add", "Mul", "Div")},
    "SparseReshape": [Recipe([[[0, 1], [1, 2]], [2, 3], [3, 2]])],
    "SparseSlice": [Recipe([*_SPARSE, [0, 0], [1, 2]])],
    "SparseFillEmptyRows": [Recipe([*_SPARSE, ()])],
    "SparseAdd": [Recipe([*_SPARSE, *_SPARSE, ()])],
    "SparseSparseMaximum": [Recipe([*_SPARSE, *_SPARSE])],
    "SparseSparseMinimum": [Recipe([*_SPARSE, *_SPARSE])],
    "SparseSoftmaxCrossEntropyWithLogits": [Recipe([(4, 3), [0, 1, 2, 0]])],
    "Pad": [Recipe([(2, 3), [[0, 1], [1, 0]]])],
    "PadV2": [Recipe([(2, 3), [[0, 1], [1, 0]], ()])],
    "MirrorPad": [Recipe([(2, 3), [[0, 1], [1, 0]]], {"mode": "REFLECT"})],
    "MirrorPadGrad": [Recipe([(3, 4), [[0, 1], [1, 0]]], {"mode": "REFLECT"})],
    "Reshape": [Recipe([(2, 3), [3, 2]])],
    "Slice": [Recipe([(2, 3), [0, 1], [2, 2]])],
    "StridedSlice": [Recipe([(4, 3), [0, 1], [4, 3], [2, 1]])],
    "StridedSliceGrad": [Recipe([[4, 3], [0, 1], [4, 3], [2, 1], (2, 2)])],
    "TensorStridedSliceUpdate": [Recipe([(4, 3), [0, 1], [4, 3], [2, 1], (2, 2)])],
    "ResourceStridedSliceAssign": [Recipe([(4, 3), [0, 1], [4, 3], [2, 1], (2, 2)])],
    "SplitV": [Recipe([(3, 2), [1, 2], 0], {"num_split": 2})],
    "ReverseSequence": [Recipe([(2, 3), [1, 2]], {"seq_dim": 1})],
    "TopKV2": [Recipe([(2, 3), 2])],
    "InTopKV2": [Recipe([(2, 3), [0, 1], 2])],
    "InTopK": [Recipe([(2, 3), [0, 1]], {"k": 2})],
    "Range": [Recipe([0, 5, 1])],
    "LinSpace": [Recipe([0.0, 1.0, 4])],
    "OneHot": [Recipe([[0, 1, 2], 3, (), ()])],
    "Fill": [Recipe([[2, 3], ()])],
    "DynamicStitch": [Recipe([[[0, 2], [1, 3]], [(2, 3), (2, 3)]])],
    "ParallelDynamicStitch": [Recipe([[[0, 2], [1, 3]], [(2, 3), (2, 3)]])],
    "DynamicPartition": [Recipe([(4, 3), [0, 1, 1, 0]], {"num_partitions": 2})],
    "InvertPermutation": [Recipe([[2, 0, 1]])],
    "BroadcastTo": [Recipe([(1, 3), [2, 3]])],
    "CTCLoss": [Recipe([(4, 1, 3), [[0, 0], [0, 1]], [0, 1], [4]])],
    "Betainc": [Recipe([(3,), (3,), (3,)])],
    "CropAndResize": [Recipe([_IMAGE, [[0.0, 0.0, 1.0, 0.5]], [0], [3, 3]])],
    "ResizeBilinear": [Recipe([_IMAGE, [6, 8]])],
    "ResizeNearestNeighbor": [Recipe([_IMAGE, [6, 8]])],
    "ResizeBicubic": [Recipe([_IMAGE, [6, 8]])],
    "ResizeArea": [Recipe([_IMAGE, [6, 8]])],
    "ResizeBilinearGrad": [Recipe([(1, 6, 8, 3), _IMAGE])],
    "ResizeNearestNeighborGrad": [Recipe([(1, 6, 8, 3), [4, 4]])],
    **{f"NonMaxSuppressionV{version}": [Recipe([_BOXES, (3,), 2, 0.5, 0.1])] for version in (3, 4)},
    **{op: [Recipe([2, (2, 2, 3), *_CELL])] for op in ("BlockLSTM", "BlockLSTMV2")},
    "LSTMBlockCell": [Recipe([(2, 3), *_CELL])],
    "LSTMBlockCellGrad": [Recipe([(2, 3), *_CELL, *[(2, 4)] * 8])],
    "GRUBlockCell": [Recipe([(2, 3), (2, 4), (7, 8), (7, 4), (8,), (4,)])],
    "GRUBlockCellGrad": [Recipe([(2, 3), (2, 4), (7, 8), (7, 4), (8,), (4,), *[(2, 4)] * 4])],
    "SpaceToBatchND": [Recipe([(1, 4, 4, 3), [2, 2], [[0, 0], [0, 0]]])],
    "BatchToSpaceND": [Recipe([(4, 2, 2, 3), [2, 2], [[0, 0], [0, 0]]])],
    "ExtractImagePatches": [
        Recipe([_IMAGE], {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"})
    ],
    "TridiagonalSolve": [Recipe([[[1.0, 1.0, 0.0], [4.0, 4.0, 4.0], [0.0, 1.0, 1.0]], (3, 2)])],
    "Bitcast": [Recipe([(2, 3)], {"T": 1, "type": 3})],
    **{op: [Recipe([[[4.0, 1.0], [1.0, 3.0]]])]
       for op in ("SelfAdjointEigV2", "MatrixLogarithm", "MatrixSquareRoot", "LogMatrixDeterminant")},
    "BatchToSpace": [Recipe([(4, 2, 2, 3), [[0, 0], [0, 0]]], {"block_size": 2})],
    "ClipByValue": [Recipe([(2, 3), 0.25, 0.75])],
    **{f"FakeQuantWithMinMaxVars{kind}": [Recipe([(2, 3), [0.0] * 3, [0.75] * 3])] for kind in ("PerChannel",)},
    "FakeQuantWithMinMaxVars": [Recipe([(2, 3), 0.0, 0.75])],
    **{f"{side}Bound": [Recipe([[[0.25, 0.5, 0.75]] * 2, (2, 3)])] for side in ("Lower", "Upper")},
    "MatrixDiagPartV3": [Recipe([(3, 4), [0, 1], ()]), Recipe([(3, 4), 0, ()])],
    "MatrixDiagPartV2": [Recipe([(3, 4), [0, 1], ()])],
    "MatrixSetDiagV3": [Recipe([(3, 4), (2, 3), [0, 1]])],
    "MatrixSetDiagV2": [Recipe([(3, 4), (2, 3), [0, 1]])],
    "EnsureShape": [Recipe([(2, 3)])],
    "RFFT": [Recipe([(2, 4), [4]])],
    "RFFT3D": [Recipe([(2, 4, 4), [2, 4, 4]])],
    "IRFFT": [Recipe([(2, 3), [4]])],
    "DepthToSpace": [Recipe([(1, 2, 2, 4)], {"block_size": 2})],
    "MatrixDiagV2": [Recipe([(2, 3), [0, 1], -1, -1, ()])],
    "MatrixDiagV3": [Recipe([(2, 3), [0, 1], -1, -1, ()])],
    "MatrixSolveLs": [Recipe([[[4.0, 1.0], [1.0, 3.0], [0.0, 1.0]], (3, 2), ()])],
    "TridiagonalMatMul": [Recipe([(1, 3), (1, 3), (1, 3), (3, 2)])],
    "ScaleAndTranslate": [Recipe([_IMAGE, [6, 8], [1.5, 2.0], [0.0, 0.0]])],
    "ScaleAndTranslateGrad": [Recipe([(1, 6, 8, 3), _IMAGE, [1.5, 2.0], [0.0, 0.0]])],
    "CropAndResizeGradImage": [Recipe([(1, 3, 3, 3), [[0.0, 0.0, 1.0, 0.5]], [0], [1, 4, 4, 3]])],
    "CropAndResizeGradBoxes": [Recipe([(1, 3, 3, 3), _IMAGE, [[0.0, 0.0, 1.0, 0.5]], [0]])],
    "QuantizeAndDequantizeV3": [Recipe([(2, 3), 0.0, 1.0, 8])],
    "ImageProjectiveTransformV2": [Recipe([_IMAGE, [[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]], [4, 4]],
                                          {"interpolation": "NEAREST"})],
    "ImageProjectiveTransformV3": [Recipe([_IMAGE, [[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]], [4, 4], 0.0],
                                          {"interpolation": "BILINEAR"})],
    "NonMaxSuppressionWithOverlaps": [Recipe([(3, 3), (3,), 2, 0.5, 0.1])],
    "CombinedNonMaxSuppression": [Recipe([[[[box] for box in _BOXES]], (1, 3, 2), 2, 3, 0.5, 0.1])],
    **{f"ExtractGlimpse{version}": [Recipe([_IMAGE, [2, 2], (1, 2)], {"uniform_noise": False, "noise": "zero"})]
       for version in ("", "V2")},
    "RaggedGather": [Recipe([[[0, 2, 4]], (4,), [1, 0]], {"OUTPUT_RAGGED_RANK": 1})],
    "SetSize": [Recipe([[[0, 0], [1, 0]], [1, 2], [2, 2]])],
    "SparseAddGrad": [Recipe([(2,), *[[[0, 1], [1, 2]]] * 3])],
    "SparseSliceGrad": [Recipe([(1,), [[0, 1], [1, 2]], [0, 0], [[0, 1]]])],
    "StringToHashBucketStrong": [Recipe([[b"a", b"bc"]], {"num_buckets": 5, "key": [1, 2]})],
    "XlaDynamicSlice": [Recipe([(4, 3), [1, 0], [2, 2]])],
    "XlaSvd": [Recipe([(3, 3)], {"max_iter": 100, "epsilon": 1e-6, "precision_config": ""})],
    "ResourceSparseApplyAdagradDA": [Recipe([(4, 3), (4, 3), (4, 3), (2, 3), [0, 2], 0.1, 0.1, 0.1, 1])],
    "NonMaxSuppression": [Recipe([_BOXES, (3,), 2])],
    "NonMaxSuppressionV2": [Recipe([_BOXES, (3,), 2, 0.5])],
    "NonMaxSuppressionV5": [Recipe([_BOXES, (3,), 2, 0.5, 0.1, 0.0])],
    "ParallelConcat": [Recipe([[(1, 3), (1, 3)]], {"shape": [2, 3]})],
    "SparseSplit": [Recipe([1, *_SPARSE], {"num_split": 3})],
    "SparseBincount": [Recipe([[[0, 1], [1, 2]], [0, 1], [2, 3], 3, (0,)])],
    "RaggedTensorToTensor": [Recipe([[2, 3], (4,), (), [[0, 1, 4]]],
                                    {"row_partition_types": ["ROW_SPLITS"]})],
    "SobolSample": [Recipe([2, 4, 0])],
    "ComputeAccidentalHits": [Recipe([[[1], [2]], [2, 1, 3]], {"num_true": 1})],
    "StringToNumber": [Recipe([[b"1", b"2.5"]])],
    "ResourceSparseApplyRMSProp": [
        Recipe([(4, 3), (4, 3), (4, 3), 0.1, 0.9, 0.1, 0.01, (2, 3), [0, 2]])
    ],
    "ResourceSparseApplyProximalGradientDescent": [Recipe([(4, 3), 0.1, 0.1, 0.1, (2, 3), [0, 2]])],
    "ResourceSparseApplyProximalAdagrad": [Recipe([(4, 3), (4, 3), 0.1, 0.1, 0.1, (2, 3), [0, 2]])],
    "ResourceSparseApplyFtrl": [Recipe([(4, 3), (4, 3), (4, 3), (2, 3), [0, 2], 0.1, 0.1, 0.1, -0.5])],
    "ResourceSparseApplyFtrlV2": [Recipe([(4, 3), (4, 3), (4, 3), (2, 3), [0, 2], 0.1, 0.1, 0.1, 0.0, -0.5])],
    "ResourceSparseApplyCenteredRMSProp": [
        Recipe([(4, 3), (4, 3), (4, 3), (4, 3), 0.1, 0.9, 0.1, 0.01, (2, 3), [0, 2]])
    ],
    "ResourceSparseApplyMomentum": [Recipe([(4, 3), (4, 3), 0.1, (2, 3), [0, 2], 0.9])],
    "ResourceSparseApplyKerasMomentum": [Recipe([(4, 3), (4, 3), 0.1, (2, 3), [0, 2], 0.9])],
    "ResourceSparseApplyAdagrad": [Recipe([(4, 3), (4, 3), 0.1, (2, 3), [0, 2]])],
    "ResourceSparseApplyAdadelta": [
        Recipe([(4, 3), (4, 3), (4, 3), 0.1, 0.9, 0.01, (2, 3), [0, 2]])
    ],
}  # fmt: skip
