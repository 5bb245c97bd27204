"""Errors that Graphcore documents of its ops: raised where a graph is made, so that nothing is compiled."""

import functools
import os

import documented_errors
import numpy as np
import pytest
import tensorflow as tf
from compiling import compile_, placeholder
from tf_ipu_shim.ipu import (
    custom_ops,
    embedded_runtime,
    embedding_ops,
    image_ops,
    math_ops,
    nn_ops,
    normalization_ops,
    rand_ops,
    slicing_ops,
    statistics_ops,
    within_replica_ops,
)
from tf_ipu_shim.ipu.ops import f8_ops, op_util
from tf_ipu_shim.ipu.ops.experimental.popfloat_cast_to_gfloat import GenericFloat

from tf_ipu_shim import ipu

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
HostEmbedding = embedding_ops.HostEmbedding
ADD = "COLLECTIVE_OP_ADD"


def ints(*shape):
    return placeholder(*shape, dtype=tf.int32)


def halves(*shape):
    return placeholder(*shape, dtype=tf.float16)


def of_no_rank():
    return v1.placeholder(tf.float32)


def user_op(name, **options):
    outs = {"output_types": [tf.float32], "output_shapes": [tf.TensorShape([2])]}
    return getattr(custom_ops, name)([placeholder(2)], "library.so", outs=outs, **options)


def table():
    return v1.get_variable("table", [4, 2], use_resource=True)


def registered():
    with HostEmbedding("embedding", table()).register():
        pass


def lookup(factor):
    return embedding_ops.embedding_lookup(placeholder(4, 2), ints(3), serialization_factor=factor)


def quarters(*shape):
    return f8_ops.QuarterTensor(tf.zeros(shape, tf.uint8), f8_ops.create_metadata(f8_ops.Format.F143))


def assigned_floats():
    with tf.init_scope():
        metadata = f8_ops.create_metadata(f8_ops.Format.F143)
        tensor = f8_ops.QuarterTensor(tf.Variable(tf.zeros([2], tf.uint8)), metadata)
        tensor.assign([tf.zeros([2]), metadata])


def cast(call, set_param=True, reset=False, **options):
    """A call on a cast to 8 bits and back."""
    made = GenericFloat(**{"man": 3, "exp": 4, "bias": 7, "en_denorm": True, "en_inf": True, **options})
    if set_param:
        made.set_param()
    if reset:
        made.reset()
    return call(made)


def product(a, b, factor, dimension):
    return math_ops.serialized_matmul(placeholder(*a), placeholder(*b), factor, dimension)


def ctc(loss):
    return getattr(nn_ops, loss)(ints(2, 3), placeholder(5, 2, 4), ints(2), ints(2), 0, out_dtype=tf.float16)


def several_convolutions():
    def model(x):
        @nn_ops.multi_conv(options=1)
        def convolutions(y):
            return tf.nn.conv2d(y, tf.ones([1, 1, 2, 2]), 1, "SAME")

        return convolutions(x)

    compile_(model, placeholder(1, 2, 2, 2))


def norm(name, x, **options):
    groups = {"groups": 2} if name == "group_norm" else {}
    return getattr(normalization_ops, f"{name}")(x, **{**groups, **options})


def sliced(dst, src, *lengths):
    return slicing_ops.sequence_slice(placeholder(*dst), placeholder(*src), *map(ints, lengths), True)


def packed(dst, src, *lengths):
    return slicing_ops.sequence_slice_pack(placeholder(*dst), placeholder(*src), *map(ints, lengths), True)


def collective(name, *shards):
    return getattr(within_replica_ops, name)(list(shards), *([] if name == "all_gather" else [ADD]))


def twice(name):
    x = placeholder(2)
    return collective(name, x, x)


NORMS = [
    row
    for name in ("group_norm", "instance_norm", "layer_norm")
    for row in [
        (name, ValueError, "Inputs … has undefined rank.", lambda n=name: norm(n, of_no_rank())),
        (name, ValueError, "Axis is out of bounds.", lambda n=name: norm(n, placeholder(1, 2, 4), channels_axis=3)),
        (
            name,
            ValueError,
            "Unsupported data format, group norm only supports",
            lambda n=name: norm(n, placeholder(1, 2, 3, 4), channels_axis=2),
        ),
        (
            name,
            ValueError,
            "Inputs … has undefined channel dimension: …",
            lambda n=name: norm(n, placeholder(1, 2, None)),
        ),
    ]
]
COLLECTIVES = [
    row
    for name in ("all_gather", "all_reduce", "reduce_scatter")
    for row in [
        (name, ValueError, "input_shards should not contain any duplicate entries.", lambda n=name: twice(n)),
        (
            name,
            ValueError,
            "Expected tensors to all be of the same type",
            lambda n=name: collective(n, placeholder(2), ints(2)),
        ),
        (
            name,
            ValueError,
            "Expected tensors to all be of the same rank",
            lambda n=name: collective(n, placeholder(2), placeholder(2, 2)),
        ),
    ]
]
USER_OPS = [
    (name, ValueError, f"Expected {argument} to be a 'str' type,", lambda n=name, a=argument: user_op(n, **{a: 1}))
    for name in ("cpu_user_operation", "precompiled_user_op")
    for argument in ("attributes", "gradient_attributes")
]
OPS = [
    (
        "HostEmbedding",
        NotImplementedError,
        "HostEmbedding.__call__ is not supported. Please use the",
        lambda: HostEmbedding("embedding", table())(1),
    ),
    (
        "HostEmbedding",
        ValueError,
        "HostEmbedding embedding_tensor is not a tensorflow tensor",
        lambda: HostEmbedding("embedding", [[1.0]]),
    ),
    (
        "HostEmbedding",
        ValueError,
        "HostEmbedding optimizer_spec is not a HostEmbeddingOptimizerSpec or",
        lambda: HostEmbedding("embedding", table(), optimizer_spec=1),
    ),
    (
        "HostEmbedding",
        ValueError,
        "Unknown partition strategy",
        lambda: HostEmbedding("embedding", table(), partition_strategy="ROWS"),
    ),
    ("HostEmbedding", ValueError, "HostEmbedding.register requires a session when eager execution", registered),
    ("embedding_lookup", ValueError, "serialization_factor has to be at least 1,", lambda: lookup(0)),
    ("embedding_lookup", ValueError, "The serialization_factor (3) must divide the size", lambda: lookup(3)),
    (
        "embedded_runtime_stop",
        NotImplementedError,
        "Embedded runtime doesn't support stopping an engine.",
        lambda: embedded_runtime.embedded_runtime_stop(None),
    ),
    (
        "cast_gfloat_to_native",
        RuntimeError,
        "Gfloat parameters are not set. Try to",
        lambda: cast(lambda made: made.cast_gfloat_to_native(placeholder(2)), reset=True),
    ),
    (
        "cast_native_to_gfloat",
        RuntimeWarning,
        "Gfloat format's Infs and Nans are not",
        lambda: cast(lambda made: made.cast_native_to_gfloat(placeholder(2), en_nanoo=True), en_inf=False),
    ),
    (
        "cast_native_to_gfloat",
        RuntimeError,
        "Cast object properties were modified and object",
        lambda: cast(lambda made: made.cast_native_to_gfloat(placeholder(2)), reset=True),
    ),
    (
        "cast_native_to_gfloat",
        RuntimeError,
        "Gfloat storage format not supported",
        lambda: cast(lambda made: made.cast_native_to_gfloat(placeholder(2), storage_type="fp8")),
    ),
    (
        "get_gfloat_param_size",
        RuntimeError,
        "Gfloat format calculation type not supported",
        lambda: GenericFloat.get_gfloat_param_size(tf.int32),
    ),
    (
        "set_param",
        RuntimeError,
        "Gfloat format cannot be generated using IEEE",
        lambda: cast(lambda made: None, exp=6, calc_type="fp16"),
    ),
    (
        "set_param",
        RuntimeError,
        "Gfloat calculation type not supported",
        lambda: cast(lambda made: None, calc_type="fp64"),
    ),
    (
        "QuarterTensor",
        TypeError,
        "Trying to set/update QuarterTensor data with a",
        lambda: f8_ops.QuarterTensor(tf.zeros([2]), f8_ops.create_metadata(f8_ops.Format.F143)),
    ),
    ("QuarterTensor", TypeError, "Trying to set/update QuarterTensor data with a", assigned_floats),
    (
        "canonicalise_input",
        Exception,
        "Input shape must be fully defined:",
        lambda: f8_ops.canonicalise_input((placeholder(None, 2, dtype=tf.uint8), np.uint8(0))),
    ),
    (
        "f8_conv_1d",
        ValueError,
        "`data_format` must be 'NWC' or 'NCW'. Received:",
        lambda: f8_ops.f8_conv_1d(quarters(1, 4, 2), quarters(2, 2, 2), 1, "SAME", data_format="CWN"),
    ),
    (
        "normalise_image",
        TypeError,
        "The input `image` to `normalise_image` must be",
        lambda: image_ops.normalise_image(ints(1, 2, 2, 3), placeholder(3), placeholder(3)),
    ),
    (
        "segment_sum",
        ValueError,
        "Shape of data must be fully defined",
        lambda: math_ops.segment_sum(placeholder(None, 2), ints(4), 2),
    ),
    (
        "segment_sum",
        ValueError,
        "Shape of segment_ids must be fully defined",
        lambda: math_ops.segment_sum(placeholder(4, 2), ints(None), 2),
    ),
    (
        "segment_sum",
        ValueError,
        "num_segments must be greater than 0; got 0",
        lambda: math_ops.segment_sum(placeholder(4, 2), ints(4), 0),
    ),
    (
        "segment_sum",
        ValueError,
        "segment_ids (shape …) must have same length",
        lambda: math_ops.segment_sum(placeholder(4, 2), ints(3), 2),
    ),
    (
        "serialized_matmul",
        ValueError,
        "serialization_factor has to be at least 1,",
        lambda: product((4, 4), (4, 4), 0, "a_columns"),
    ),
    (
        "serialized_matmul",
        ValueError,
        "Expected tensor 'a' to have a minimum rank of 2",
        lambda: product((4,), (4, 4), 2, "a_columns"),
    ),
    (
        "serialized_matmul",
        ValueError,
        "Expected tensor 'b' to have a minimum rank of 2",
        lambda: product((4, 4), (4,), 2, "a_columns"),
    ),
    (
        "serialized_matmul",
        ValueError,
        "Expected 'serialization_factor' (3) to divide the columns",
        lambda: product((4, 4), (4, 4), 3, "a_columns"),
    ),
    (
        "serialized_matmul",
        ValueError,
        "Expected the number of columns in 'a'",
        lambda: product((4, 4), (6, 4), 2, "a_rows_b_columns"),
    ),
    (
        "serialized_matmul",
        ValueError,
        "Expected 'serialization_factor' (3) to divide the rows",
        lambda: product((4, 4), (4, 4), 3, "b_rows"),
    ),
    (
        "serialized_matmul",
        ValueError,
        "Invalid serialization_dimension=…, expected one of: 'a_columns', 'a_rows_b_columns',",
        lambda: product((4, 4), (4, 4), 2, "rows"),
    ),
    ("ctc_loss_v2", ValueError, "out_dtype cannot be float16 when dtype of", lambda: ctc("ctc_loss_v2")),
    ("ctc_loss", ValueError, "out_dtype cannot be float16 when dtype of", lambda: ctc("ctc_loss_with_log_probs")),
    ("multi_conv", TypeError, "Expected the multi_conv `options` to be a", several_convolutions),
    (
        "group_norm",
        ValueError,
        "Invalid groups 8 for 4 channels.",
        lambda: norm("group_norm", placeholder(1, 4), groups=8),
    ),
    (
        "group_norm",
        ValueError,
        "4 channels is not commensurate with 3",
        lambda: norm("group_norm", placeholder(1, 4), groups=3),
    ),
    ("get_activation_name", TypeError, "Unrecognized function : …", lambda: op_util.get_activation_name(np.tanh)),
    (
        "get_activation_name",
        TypeError,
        "Could not interpret activation function identifier:",
        lambda: op_util.get_activation_name(1),
    ),
    ("dropout", ValueError, "The rate must be in the range", lambda: rand_ops.dropout(placeholder(2, 3), rate=1.0)),
    ("dropout", ValueError, "The rate must be in the range", lambda: rand_ops.dropout(placeholder(2, 3), rate=-0.1)),
    (
        "dropout",
        ValueError,
        "The length of noise_shape must equal the",
        lambda: rand_ops.dropout(placeholder(2, 3), noise_shape=[1]),
    ),
    (
        "dropout",
        ValueError,
        "Dimension mismatch, 3 != 2.",
        lambda: rand_ops.dropout(placeholder(2, 3), noise_shape=[2, 2]),
    ),
    (
        "dropout",
        ValueError,
        "Expected the seed to have a shape",
        lambda: rand_ops.dropout(placeholder(2, 3), seed=ints(3)),
    ),
    (
        "sequence_slice",
        ValueError,
        "num_elems, src_offsets and dst_offsets must have matching,",
        lambda: sliced((4, 2), (4, 2), 2, 3, 2),
    ),
    ("sequence_slice", ValueError, "src and dst inner shapes must match.", lambda: sliced((4, 3), (4, 2), 2, 2, 2)),
    (
        "sequence_slice_pack",
        ValueError,
        "num_elems and dst_offsets must have matching, nonzero",
        lambda: packed((4, 2), (2, 2, 2), 2, 3),
    ),
    ("sequence_slice_pack", ValueError, "src and dst inner shapes must match.", lambda: packed((4, 3), (4, 2), 2, 2)),
    (
        "sequence_slice_unpack",
        ValueError,
        "num_elems and src_offsets must have matching, nonzero",
        lambda: slicing_ops.sequence_slice_unpack(placeholder(4, 2), ints(2), ints(3), 4),
    ),
    (
        "histogram",
        ValueError,
        "Only float16 and float32 types are supported",
        lambda: statistics_ops.histogram(ints(4), placeholder(2)),
    ),
    (
        "histogram",
        ValueError,
        "histogram expects rank-1 tensor inputs.",
        lambda: statistics_ops.histogram(placeholder(4, 2), placeholder(2)),
    ),
    (
        "histogram_update",
        ValueError,
        "hist must be of float32 type",
        lambda: statistics_ops.histogram_update(halves(3), placeholder(4), placeholder(2)),
    ),
    (
        "histogram_update",
        ValueError,
        "Only float16 and float32 types are supported",
        lambda: statistics_ops.histogram_update(placeholder(3), ints(4), placeholder(2)),
    ),
    (
        "histogram_update",
        ValueError,
        "histogram_update expects rank-1 tensor inputs.",
        lambda: statistics_ops.histogram_update(placeholder(3), placeholder(4, 2), placeholder(2)),
    ),
    (
        "histogram_update",
        ValueError,
        "hist and levels shapes are incompatible. For",
        lambda: statistics_ops.histogram_update(placeholder(3), placeholder(4), placeholder(3)),
    ),
    (
        "all_gather",
        ValueError,
        "Expecting tensor dimensions to all have the",
        lambda: collective("all_gather", placeholder(2, 2), placeholder(2, 3)),
    ),
    (
        "all_gather",
        AssertionError,
        "along axis 1 of shards of rank 1",
        lambda: within_replica_ops.all_gather([placeholder(2), placeholder(2)], axis=1),
    ),
]


@documented_errors.cases([*USER_OPS, *OPS, *NORMS, *COLLECTIVES])
def test_an_op(graph, error, words, call):
    documented_errors.check(error, words, call)


@pytest.fixture(scope="module")
def application(tmp_path_factory):
    """A program that multiplies what it is fed with an input of the engine."""
    path = os.fspath(tmp_path_factory.mktemp("application") / "times.poplar_exec")
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([2])).repeat())
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

        def program(factor):
            return ipu.loops.repeat(16, lambda factor, x: (factor, outfeed.enqueue(x * factor)), [factor], infeed)

        factor = placeholder(2)
        written = ipu.application_compile_op.experimental_application_compile_op(program, [factor], path)
        session.run(written, {factor: np.zeros(2)})
    return path


@pytest.mark.parametrize(
    ("words", "inputs"),
    [
        ("Failed to find input tensor with name", {"nonsense": np.zeros(2, "f")}),
        ("Expected the inputs to be a list.", 1),
        ("Embedded application runtime expects 1 inputs, but 0", []),
        ("Mismatched input shape at position 0 ('…').", [np.zeros(3, "f")]),
        ("Mismatched input dtype at position 0 ('…').", [np.zeros(2, "i")]),
    ],
)
def test_starting_an_engine(application, graph, words, inputs):
    start = functools.partial(embedded_runtime.embedded_runtime_start, application, inputs, "engine")
    documented_errors.check(Exception, words, start)


@pytest.mark.parametrize(
    ("error", "words", "inputs"),
    [
        (Exception, "Embedded application call expects 1 inputs, but 0", []),
        (Exception, "Mismatched input shape at position 0 ('…').", [np.zeros(3, "f")]),
        (TypeError, "Mismatched input dtype at position 0 ('…').", [np.zeros(2, "i")]),
    ],
)
def test_calling_an_engine(application, graph, error, words, inputs):
    context = embedded_runtime.embedded_runtime_start(application, [np.zeros(2, "f")], "engine")
    documented_errors.check(error, words, lambda: embedded_runtime.embedded_runtime_call(inputs, context))
