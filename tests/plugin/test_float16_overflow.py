"""Each kind of op that clips float16 overflows: stock TensorFlow's infinities are 65504 there."""

import numpy as np
import tensorflow as tf
from harness import IPU, configure

from tf_ipu_shim import ipu
from tf_ipu_shim.compiler.xla_semantics import float16_overflow

LARGE = np.float16([60000, -60000])
MATRIX = np.float16([[60000, 60000], [1, 1]])
IMAGE = np.full([1, 2, 2, 1], 60000, np.float16)
VOLUME = np.full([1, 2, 2, 2, 1], 60000, np.float16)
KERNEL, CUBE = np.ones([2, 2, 1, 1], np.float16), np.ones([2, 2, 2, 1, 1], np.float16)
ROWS = np.array([0, 0], np.int32)
AT = np.array([[0], [0]], np.int32)
STRIDES = {"strides": [1, 1, 1, 1], "padding": "VALID"}
STRIDES_3D = {"strides": [1] * 5, "padding": "VALID"}
IMAGE_SIZES, KERNEL_SIZES = np.array([1, 2, 2, 1], np.int32), np.array([2, 2, 1, 1], np.int32)
VOLUME_SIZES, CUBE_SIZES = np.array([1, 2, 2, 2, 1], np.int32), np.array([2, 2, 2, 1, 1], np.int32)
ONE_IMAGE, ONE_VOLUME = np.full([1, 1, 1, 1], 60000, np.float16), np.full([1, 1, 1, 1, 1], 60000, np.float16)


def half(*values):
    return np.array(values, np.float16)


# The fed operands of an op, and its attributes.
CASES = {
    **{op: ({"x": half(12, 20)}, {}) for op in ("Exp", "Expm1", "Cosh", "Sinh", "BesselI0", "BesselI1")},
    **{op: ({"x": half(0, 1)}, {}) for op in ("Log", "BesselK0", "BesselK1", "BesselY0", "Lgamma")},
    "BesselY1": ({"x": half(5e-6, 1)}, {}),
    "Atanh": ({"x": half(1, 0.5)}, {}),
    "Log1p": ({"x": half(-1, 1)}, {}),
    "Square": ({"x": LARGE}, {}),
    "Selu": ({"features": half(64000, 1)}, {}),
    "LeakyRelu": ({"features": half(60000, -60000)}, {"alpha": 2.0}),
    "Reciprocal": ({"x": half(1e-7, 2)}, {}),
    "Inv": ({"x": half(1e-7, 2)}, {}),
    **{op: ({"x": LARGE, "y": LARGE}, {}) for op in ("Add", "AddV2", "Mul", "MulNoNan", "Xlogy")},
    **{op: ({"x": LARGE, "y": -LARGE}, {}) for op in ("Sub", "SquaredDifference")},
    "AddN": ({"inputs": [LARGE, LARGE]}, {}),
    "Einsum": ({"inputs": [MATRIX, MATRIX]}, {"equation": "ij,jk->ik"}),
    "LogSoftmax": ({"logits": LARGE[None]}, {}),
    **{op: ({"x": LARGE, "y": half(0.5, 0.5)}, {}) for op in ("Div", "DivNoNan", "FloorDiv", "RealDiv", "Xdivy")},
    "Pow": ({"x": half(300, 2), "y": half(2, 2)}, {}),
    "Xlog1py": ({"x": LARGE, "y": half(60000, 60000)}, {}),
    **{
        op: ({"y": half(60000, 1), "dy": half(60000, 1)}, {})
        for op in ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "TanhGrad")
    },
    "SqrtGrad": ({"y": half(0.25, 1), "dy": half(60000, 1)}, {}),
    "SeluGrad": ({"gradients": half(64000, 1), "outputs": half(1, 1)}, {}),
    "LeakyReluGrad": ({"gradients": half(60000, 1), "features": half(-1, -1)}, {"alpha": 2.0}),
    "Cross": ({"a": half(60000, 2, 60000), "b": half(2, 60000, 2)}, {}),
    "L2Loss": ({"t": LARGE}, {}),
    **{op: ({"input": half(60000, 60000)}, {"axis": 0}) for op in ("Sum", "Prod", "EuclideanNorm")},
    **{op: ({"x": half(60000, 60000)}, {"axis": 0}) for op in ("Cumsum", "Cumprod")},
    "MatMul": ({"a": MATRIX, "b": MATRIX}, {}),
    **{op: ({"x": MATRIX, "y": MATRIX}, {}) for op in ("BatchMatMul", "BatchMatMulV2")},
    "BiasAdd": ({"value": MATRIX, "bias": half(60000, 1)}, {}),
    "BiasAddGrad": ({"out_backprop": np.full([2, 2], 60000, np.float16)}, {}),
    "Conv2D": ({"input": IMAGE, "filter": KERNEL}, STRIDES),
    "Conv2DBackpropInput": ({"filter": KERNEL * 2, "out_backprop": ONE_IMAGE}, {"input_sizes": IMAGE_SIZES, **STRIDES}),
    "Conv2DBackpropFilter": (
        {"input": IMAGE, "out_backprop": ONE_IMAGE},
        {"filter_sizes": KERNEL_SIZES, **STRIDES},
    ),
    "DepthwiseConv2dNative": ({"input": IMAGE, "filter": KERNEL}, STRIDES),
    "DepthwiseConv2dNativeBackpropInput": (
        {"filter": KERNEL * 2, "out_backprop": ONE_IMAGE},
        {"input_sizes": IMAGE_SIZES, **STRIDES},
    ),
    "DepthwiseConv2dNativeBackpropFilter": (
        {"input": IMAGE, "out_backprop": ONE_IMAGE},
        {"filter_sizes": KERNEL_SIZES, **STRIDES},
    ),
    "Conv3D": ({"input": VOLUME, "filter": CUBE}, STRIDES_3D),
    "Conv3DBackpropInputV2": (
        {"filter": CUBE * 2, "out_backprop": ONE_VOLUME},
        {"input_sizes": VOLUME_SIZES, **STRIDES_3D},
    ),
    "Conv3DBackpropFilterV2": (
        {"input": VOLUME, "out_backprop": ONE_VOLUME},
        {"filter_sizes": CUBE_SIZES, **STRIDES_3D},
    ),
    "ScatterNd": ({"updates": half(60000, 60000)}, {"indices": AT, "shape": [2]}),
    "ScatterNdNonAliasingAdd": ({"input": half(60000, 1), "updates": half(60000, 60000)}, {"indices": AT}),
    "TensorScatterAdd": ({"tensor": half(60000, 1), "updates": half(60000, 60000)}, {"indices": AT}),
    "TensorScatterSub": ({"tensor": half(-60000, 1), "updates": half(60000, 60000)}, {"indices": AT}),
    "SegmentSum": ({"data": half(60000, 60000)}, {"segment_ids": ROWS}),
    "SegmentProd": ({"data": half(60000, 60000)}, {"segment_ids": ROWS}),
    "UnsortedSegmentSum": ({"data": half(60000, 60000)}, {"segment_ids": ROWS, "num_segments": 1}),
    "UnsortedSegmentProd": ({"data": half(60000, 60000)}, {"segment_ids": ROWS, "num_segments": 1}),
    "ResizeNearestNeighborGrad": ({"grads": IMAGE}, {"size": [1, 1]}),
    "Dilation2D": (
        {"input": IMAGE, "filter": np.full([2, 2, 1], 60000, np.float16)},
        {"rates": [1, 1, 1, 1], **STRIDES},
    ),
    "MirrorPadGrad": ({"input": half(60000, 60000, 60000)}, {"paddings": [[1, 0]], "mode": "REFLECT"}),
    "Cast": ({"x": np.float32([1e6, 1])}, {"DstT": tf.float16}),
}
# Ops that programs of an IPU cannot have.
ONLY_BY_THEMSELVES = frozenset(
    "BesselI0 BesselI1 BesselK0 BesselK1 BesselY0 BesselY1 Dilation2D EuclideanNorm InvGrad ScatterNdNonAliasingAdd "
    "SegmentProd SegmentSum".split()
)


def fed(op):
    return tf.nest.map_structure(tf.constant, CASES[op][0])


def call(op, operands):
    return getattr(tf.raw_ops, op)(**operands, **CASES[op][1])


def assert_clipped(results):
    for op, result in results.items():
        with tf.device("/CPU:0"):
            infinite = call(op, fed(op)).numpy()
        assert np.isinf(infinite).any(), op
        np.testing.assert_allclose(result, np.clip(infinite, -65504, 65504), rtol=2e-3, err_msg=op)


def test_each_kind_of_op_clips_in_programs(configured_in_each_mode):
    strategy = ipu.ipu_strategy.IPUStrategy()
    operands = {op: fed(op) for op in CASES if op not in ONLY_BY_THEMSELVES}
    program = tf.function(lambda operands: {op: call(op, given) for op, given in operands.items()})
    with strategy.scope():
        assert_clipped(strategy.run(program, [operands]))


def test_each_kind_of_op_clips_by_itself(own_environment):
    configure()
    with tf.device(IPU):
        assert_clipped({op: call(op, fed(op)).numpy() for op in CASES})


def test_the_cases_are_ops_that_clip():
    assert set(CASES) <= float16_overflow.OVERFLOWING
