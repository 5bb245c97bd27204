"""Errors that Graphcore documents of its layers and of Keras optimizers."""

import importlib

import documented_errors
import pytest
import tensorflow as tf
from compiling import placeholder
from ipu_tensorflow_addons.keras import layers, optimizers
from ipu_tensorflow_addons.v1 import layers as v1_layers

from tf_ipu_shim import ipu, keras2

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
keras = keras2.public_module()
SGD = keras.optimizers.legacy.SGD
ALS = keras.ipu.optimizers.ALSOptimizer
UNKNOWN = tf.TensorShape(None)


def serial(factor=2, dimension="input_columns", **options):
    return layers.SerialDense(4, factor, dimension, **options)


def serial_of_sparse():
    layer = serial()
    layer.build([2, 4])
    layer.call(tf.sparse.from_dense(tf.eye(4)))


def built(make, shape, **options):
    return lambda: make(**options).build(shape)


LAYERS = [
    *(
        (
            "Dense",
            ValueError,
            "`kernel_scale` should be in the range [-32,",
            lambda s=scale: layers.Dense(4, kernel_scale=s),
        )
        for scale in (-33, 32)
    ),
    (
        "Dense",
        TypeError,
        "Unable to build `Dense` layer with non-floating",
        built(layers.Dense, [2, 4], units=4, dtype="int32"),
    ),
    ("Dense", ValueError, "The last dimension of the inputs to", built(layers.Dense, [2, None], units=4)),
    (
        "SerialDense",
        TypeError,
        "Unable to build `SerialDense` layer with non-floating",
        built(serial, [2, 4], dtype="int32"),
    ),
    ("SerialDense", ValueError, "The last dimension of the inputs to", built(serial, [2, None])),
    ("SerialDense", TypeError, "Unable to build `SerialDense` layer with sparse", serial_of_sparse),
    ("SerialDense", ValueError, "serialization_factor has to be at least 1,", lambda: serial(0)(tf.ones([2, 4]))),
    (
        "SerialDense",
        ValueError,
        "Invalid serialization_dimension=rows, expected one of: 'input_columns', 'input_rows_kernel_columns',",
        lambda: serial(2, "rows")(tf.ones([2, 4])),
    ),
    (
        "SerialDense",
        ValueError,
        "The innermost dimension of input_shape must be",
        lambda: serial().compute_output_shape([2, None]),
    ),
    ("Embedding", ValueError, "The input shape should be a tensor", lambda: layers.Embedding(4, 2).build([2, 3, 4])),
    ("GroupNormalization", ValueError, "Input has undefined rank.", built(layers.GroupNormalization, UNKNOWN)),
    (
        "GroupNormalization",
        ValueError,
        "Axis is out of bounds.",
        built(layers.GroupNormalization, [2, 3, 4], channels_axis=3),
    ),
    (
        "GroupNormalization",
        ValueError,
        "Invalid groups 8 for 4 channels.",
        built(layers.GroupNormalization, [2, 3, 4], groups=8),
    ),
    (
        "GroupNormalization",
        ValueError,
        "4 channels is not commensurate with 3",
        built(layers.GroupNormalization, [2, 3, 4], groups=3),
    ),
    (
        "GroupNormalization",
        ValueError,
        "Unsupported data format, group norm only supports",
        built(layers.GroupNormalization, [2, 3, 4, 4], groups=2, channels_axis=2),
    ),
    (
        "LayerNormalization",
        ValueError,
        "Expected an int or a list/tuple of",
        lambda: layers.LayerNormalization(axis=1.0),
    ),
    ("LayerNormalization", ValueError, "Input shape … has undefined rank.", built(layers.LayerNormalization, UNKNOWN)),
    (
        "LayerNormalization",
        ValueError,
        "Invalid axis: 3",
        built(layers.LayerNormalization, tf.TensorShape([2, 3]), axis=3),
    ),
    (
        "LayerNormalization",
        ValueError,
        "Duplicate axis:",
        built(layers.LayerNormalization, tf.TensorShape([2, 3]), axis=[1, -1]),
    ),
    (
        "LayerNormalization",
        ValueError,
        "Input shape … has unknown dimensions - ",
        built(layers.LayerNormalization, tf.TensorShape([2, None])),
    ),
    *(
        (
            f"Popnn{kind}",
            ValueError,
            "inputs tensor must be 3D",
            lambda k=kind: getattr(layers, f"Popnn{k}")(4)(tf.ones([2, 4])),
        )
        for kind in ("GRU", "LSTM")
    ),
    *(
        (
            "CaptureActivationGradients",
            ValueError,
            "Layer … does not use an activation",
            lambda layer=layer: keras.ipu.layers.CaptureActivationGradients(layer()),
        )
        for layer in (keras.layers.Flatten, int)
    ),
]


@documented_errors.cases(LAYERS)
def test_a_layer(error, words, call):
    documented_errors.check(error, words, call)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize(
    "options",
    [
        {"use_bias": False},
        {"kernel_regularizer": "l2"},
        {"recurrent_regularizer": "l2"},
        {"bias_regularizer": "l2"},
        {"activity_regularizer": "l2"},
        {"kernel_constraint": "non_neg"},
        {"recurrent_constraint": "non_neg"},
        {"bias_constraint": "non_neg"},
        {"recurrent_dropout": 0.5},
        {"implementation": 3},
        {"go_backwards": True},
        {"unroll": True},
    ],
    ids=str,
)
def test_what_a_recurrent_layer_cannot_do(kind, options):
    words = f"IPU custom {kind} layer does not support"
    documented_errors.check(ValueError, words, lambda: getattr(layers, f"Popnn{kind}")(4, **options))


@pytest.mark.parametrize("name", ["PopnnLSTM", "PopnnDynamicLSTM"])
def test_a_state_that_is_none_of_an_lstm(graph, name):
    layer = getattr(v1_layers, name)(4)
    layer.build(tf.TensorShape([2, 3, 4]))
    lengths = [placeholder(3, dtype=tf.int32)] if "Dynamic" in name else []
    state = placeholder(3, 4), placeholder(3, 4)
    words = "Invalid initial_state type: `…`, expecting `LSTMStateTuple`"
    documented_errors.check(ValueError, words, lambda: layer.call(placeholder(2, 3, 4), *lengths, initial_state=state))


def als(**options):
    return ALS(SGD(0.1), **options)


def setting(name, value, make=als):
    return lambda: setattr(make(), name, value)


def slot_elsewhere():
    variable, optimizer = tf.Variable(1.0), optimizers.SGDIpuOptimizer(0.1, momentum=0.9)
    with ipu.ipu_strategy.IPUStrategy().scope():
        optimizer.add_slot(variable, "momentum")


def of_a_subclass():
    class Own(keras.ipu.optimizers.GradientAccumulationOptimizer):
        pass

    Own.from_config(keras.ipu.optimizers.GradientAccumulationOptimizer(SGD(0.1), 2).get_config())


def of_another_wrapper():
    config = keras.ipu.optimizers.GradientAccumulationOptimizer(SGD(0.1), 2).get_config()
    keras.ipu.optimizers.ALSGradientAccumulationOptimizer.from_config(config)


TOO_LARGE = "initial_loss_scaling_factor must be less than max_loss_scaling_factor"
SOON_TOO_LARGE = "initial_loss_scaling_factor x increase_factor must be less than"
OPTIMIZERS = [
    *(
        ("ALSOptimizer", ValueError, f"{name} is a read only property.", setting(name, 1))
        for name in (
            "decrease_factor",
            "histogram",
            "loss_scaling_factor",
            "normalized_histogram",
            "previous_loss_scaling_factor",
            "update_counter",
        )
    ),
    *(
        ("ALSOptimizer", ValueError, f"{name} must be a power of two", setting(name, 3))
        for name in ("increase_factor", "initial_loss_scaling_factor", "max_loss_scaling_factor")
    ),
    ("ALSOptimizer", ValueError, TOO_LARGE, setting("initial_loss_scaling_factor", 65536)),
    ("ALSOptimizer", ValueError, SOON_TOO_LARGE, setting("initial_loss_scaling_factor", 16384)),
    ("ALSOptimizer", ValueError, TOO_LARGE, lambda: als(initial_loss_scaling_factor=64, max_loss_scaling_factor=32)),
    (
        "ALSOptimizer",
        ValueError,
        SOON_TOO_LARGE,
        lambda: als(initial_loss_scaling_factor=32, max_loss_scaling_factor=64),
    ),
    *(
        (
            "ALSOptimizer",
            ValueError,
            "ratio_threshold must be greater than zero and",
            lambda r=ratio: als(ratio_threshold=r),
        )
        for ratio in (0.0, 1.0)
    ),
    ("ALSOptimizer", ValueError, "update_frequency must be nonzero and positive", lambda: als(update_frequency=0)),
    (
        "ALSGradientAccumulationOptimizer",
        ValueError,
        "ALSGradientAccumulationOptimizer can only be used with instances",
        lambda: keras.ipu.optimizers.ALSGradientAccumulationOptimizer(SGD(0.1), 2),
    ),
    (
        "ALSGradientAccumulationOptimizer",
        ValueError,
        "ALSGradientAccumulationOptimizer.from_config can only be used with configurations",
        of_another_wrapper,
    ),
    (
        "GradientAccumulationOptimizer",
        ValueError,
        "num_mini_batches must be >= 1",
        lambda: keras.ipu.optimizers.GradientAccumulationOptimizer(SGD(0.1), 0),
    ),
    (
        "GradientAccumulationOptimizer",
        ValueError,
        "GradientAccumulationOptimizer.from_config can only be used to create",
        of_a_subclass,
    ),
    *(
        (
            name,
            AssertionError,
            "",
            lambda name=name: getattr(optimizers, name)().get_slot_dtype(tf.Variable(1.0), "nonsense"),
        )
        for name in ("AdamIpuOptimizer", "LAMBIpuOptimizer", "SGDIpuOptimizer")
    ),
    (
        "LAMBIpuOptimizer",
        ValueError,
        "Must provide a list of two elements",
        lambda: optimizers.LAMBIpuOptimizer(optimizer_compute_precisions=[tf.float32]),
    ),
    ("add_slot", ValueError, "Trying to create optimizer slot variable under", slot_elsewhere),
]


@documented_errors.cases(OPTIMIZERS)
def test_an_optimizer(ipus, error, words, call):
    ipus(1)
    documented_errors.check(error, words, call)


def of_sdk_2_4(**options):
    module = importlib.import_module("tensorflow.python.ipu.optimizers")
    return module.AutomaticLossScalingOptimizer(v1.train.GradientDescentOptimizer(0.1), **options)


@documented_errors.cases(
    [
        ("factor", ValueError, "decrease_factor must be nonzero and positive", lambda: of_sdk_2_4(decrease_factor=0)),
        (
            "factor",
            ValueError,
            "increase_factor must be greater than decrease_factor",
            lambda: of_sdk_2_4(decrease_factor=2.0, increase_factor=2.0),
        ),
        ("factor", ValueError, "increase_factor must be nonzero and positive", lambda: of_sdk_2_4(increase_factor=0)),
        (
            "factor",
            ValueError,
            "initial_loss_scaling_factor must be nonzero and positive",
            lambda: of_sdk_2_4(initial_loss_scaling_factor=0),
        ),
        (
            "factor",
            ValueError,
            TOO_LARGE,
            lambda: of_sdk_2_4(initial_loss_scaling_factor=64, max_loss_scaling_factor=32),
        ),
        (
            "factor",
            ValueError,
            SOON_TOO_LARGE,
            lambda: of_sdk_2_4(initial_loss_scaling_factor=32, max_loss_scaling_factor=64),
        ),
        (
            "factor",
            ValueError,
            "max_loss_scaling_factor must be greater than one",
            lambda: of_sdk_2_4(max_loss_scaling_factor=1),
        ),
        (
            "threshold",
            ValueError,
            "ratio_threshold must be greater than zero and",
            lambda: of_sdk_2_4(ratio_threshold=1.0),
        ),
        (
            "updates",
            ValueError,
            "update_frequency must be nonzero and positive",
            lambda: of_sdk_2_4(update_frequency=0),
        ),
    ]
)
def test_loss_scaling_of_sdk_2_4(monkeypatch, error, words, call):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    documented_errors.check(error, words, call)
