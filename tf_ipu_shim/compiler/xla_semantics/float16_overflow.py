"""Clips overflowing float16 results to 65504, as IPUs do, instead of infinity.

With `floating_point_behaviour.nanoo` they are NaN; programs run in mode `kernels` then (`float_checks.cc`). In mode
`kernels`, and in uncompiled ops, results are checked after each op (`float16_overflow.cc`). XLA programs have a clip
behind each op that may overflow; the memory plan and the cycle counts do not include it.

A finite number divided by zero is NaN: a division of float16 is one of float32 on an IPU, whose infinity is not a
float16.
"""

from __future__ import annotations

import numpy as np

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.custom_calls import callers_of, rewrite_functions
from tf_ipu_shim.compiler.ir.node_defs import data_inputs
from tf_ipu_shim.compiler.ir.node_writer import NodeWriter
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

OVERFLOWING = frozenset(
    "AccumulateNV2 Add AddN AddV2 Atanh AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BatchMatMul BatchMatMulV2 "
    "BatchMatMulV3 BesselI0 BesselI1 BesselK0 BesselK1 BesselY0 BesselY1 BiasAdd BiasAddGrad BiasAddV1 Cast Conv2D "
    "Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2 Cosh Cross Cumprod "
    "Cumsum CumulativeLogsumexp DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter "
    "DepthwiseConv2dNativeBackpropInput Digamma Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput Div "
    "DivNoNan Einsum EluGrad Erfinv EuclideanNorm Exp Expm1 FloorDiv FusedBatchNorm FusedBatchNormGrad "
    "FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 InplaceAdd InplaceSub Inv InvGrad "
    "L2Loss LRN LRNGrad LeakyRelu LeakyReluGrad Lgamma Log Log1p LogSoftmax MatMul MatrixInverse MaxPool3DGrad "
    "MaxPoolGrad MaxPoolGradV2 MaxPoolGradWithArgmax Mean MirrorPadGrad Mul MulNoNan Pow Prod RealDiv Reciprocal "
    "ReciprocalGrad ResizeBilinearGrad ResizeNearestNeighborGrad Rsqrt RsqrtGrad ScatterNd ScatterNdNonAliasingAdd "
    "SegmentProd SegmentSum Selu SeluGrad SigmoidGrad Sinh SoftmaxCrossEntropyWithLogits SoftplusGrad SoftsignGrad "
    "SparseSegmentMeanGrad SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNWithNumSegments "
    "SparseSegmentSum SparseSegmentSumGrad SparseSegmentSumWithNumSegments SparseSoftmaxCrossEntropyWithLogits "
    "SparseTensorDenseMatMul SqrtGrad Square SquaredDifference Sub Sum Tan TanhGrad TensorScatterAdd "
    "TensorScatterSub TruncateDiv UnsortedSegmentProd UnsortedSegmentSum Xdivy Xlog1py Xlogy _FusedBatchNormEx "
    "_FusedConv2D _FusedDepthwiseConv2dNative _FusedMatMul".split()
)
"""Ops whose results may be out of range where their operands are not; the same as in `float16_overflow.cc`."""
DIVISORS = {"Div": 1, "FloorDiv": 1, "Inv": 0, "RealDiv": 1, "Reciprocal": 0, "Rsqrt": 0, "Xdivy": 1}
"""Those that divide, with the operand that they divide by; the same as in `float16_overflow.cc`."""
_UPDATES = ("ResourceApply", "ResourceSparseApply", "ResourceScatter", "AssignAddVariableOp", "AssignSubVariableOp")
HALF, _FLOAT = types_pb2.DT_HALF, types_pb2.DT_FLOAT
_FLOAT16_MAX = np.float32(65504)


def is_update(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether an op computes a new value of float16 variables."""
    types = (node.attr[name].type for name in ("T", "dtype") if name in node.attr)
    return node.op.startswith(_UPDATES) and HALF in types


def float16_results(node: node_def_pb2.NodeDef) -> list[str]:
    """Returns the names of an op's float16 results that may overflow."""
    if node.op not in OVERFLOWING:
        return []
    types = op_types.output_types(node)
    return [f"{node.name}:{name}:{index}" for name in types for index, kind in enumerate(types[name]) if kind == HALF]


def saturate_float16(program: LoweredProgram) -> LoweredProgram:
    """Returns the program with clipped float16 results.

    Source: docs/reference/facts.md, section "float16 that overflows".
    """
    functions = {function.signature.name: function for function in program.functions}
    clipped = [name for name, function in functions.items() if any(map(_overflows, function.node_def))]

    def clip(function: function_pb2.FunctionDef, _: str) -> None:
        if any(map(_overflows, function.node_def)):
            _FunctionClipper(function).run()

    return rewrite_functions(program, callers_of(clipped, functions), clip) if clipped else program


def _overflows(node: node_def_pb2.NodeDef) -> bool:
    return is_update(node) or bool(float16_results(node))


class _FunctionClipper:
    """Clips the float16 results of one function, in place."""

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self._function = function
        self._writer = NodeWriter(function, "in_range")
        self._constants: dict[str, str] = {}

    def run(self) -> None:
        """Adds the clips."""
        replacements: dict[str, str] = {}  # what stands for a tensor, or for an op that others wait for
        for node in self._function.node_def:
            for tensor in float16_results(node):
                replacements[tensor] = self._clipped(tensor, node)
            if is_update(node):
                replacements[f"^{node.name}"] = self._clipped_variables(node)
        for node in self._function.node_def:
            node.input[:] = [replacements.get(tensor_name, tensor_name) for tensor_name in node.input]
        for result, tensor in list(self._function.ret.items()):
            self._function.ret[result] = replacements.get(tensor, tensor)
        for result, name in list(self._function.control_ret.items()):
            self._function.control_ret[result] = replacements.get(f"^{name}", f"^{name}")[1:]
        self._function.node_def.extend(self._writer.nodes)

    def _clipped(self, tensor: str, node: node_def_pb2.NodeDef) -> str:
        within = self._clip(tensor, node.name)
        if node.op not in DIVISORS:
            return within
        zero = self._constant(np.float16(0))
        divisor = data_inputs(node)[DIVISORS[node.op]]
        is_zero = self._op("Equal", node.name, divisor, zero, T=HALF)
        self._writer.last.attr["incompatible_shape_error"].b = True
        divided = self._op("Mul", node.name, tensor, zero, T=HALF)  # NaN of infinity
        return self._op("SelectV2", node.name, is_zero, divided, within, T=HALF)

    def _clip(self, tensor: str, name: str) -> str:
        """Adds ops that remove infinities from a tensor.

        In float32, because XLA compares float16 several times slower. Once on each side: XLA fuses a minimum and a
        maximum into an op that on 2.15.1 turns NaN into a number.
        """
        value = self._op("Cast", name, tensor, SrcT=HALF, DstT=_FLOAT)
        for _ in range(2):
            least = self._op("Minimum", name, value, self._constant(_FLOAT16_MAX), T=_FLOAT)
            value = self._op("Neg", name, least, T=_FLOAT)
        return self._op("Cast", name, value, SrcT=_FLOAT, DstT=HALF)

    def _clipped_variables(self, node: node_def_pb2.NodeDef) -> str:
        """Clips variables after an op that updates them; returns the ops for which other ops then wait."""
        last = f"^{node.name}"
        for variable, kind in zip(list(node.input), op_types.input_types(node)):
            if kind == op_types.RESOURCE:
                value = self._op(vocabulary.READ_VARIABLE, node.name, variable, last, dtype=HALF)
                self._op("AssignVariableOp", node.name, variable, self._clip(value, node.name), dtype=HALF)
                last = f"^{self._writer.last.name}"
        return last

    def _op(self, op: str, name: str, *inputs: str, **types: int) -> str:
        return self._writer.op(op, inputs, name, **types)

    def _constant(self, value: np.generic) -> str:
        key = repr(value)
        if key not in self._constants:
            self._constants[key] = self._writer.constant(value, "half")
        return self._constants[key]
