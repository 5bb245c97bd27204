"""Graphcore's ops on Keras' symbolic tensors: each makes a layer, which computes what the op computes."""

import functools
import importlib
import math
import types

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close

from tf_ipu_shim import ipu, keras2
from tf_ipu_shim.names import keras_ops

pytestmark = pytest.mark.one_version

F143 = ml_dtypes.float8_e4m3fnuz
keras = keras2.public_module()
random = np.random.RandomState(3)
ROWS = 4
X = (random.rand(ROWS, 6) - 0.5).astype("f")
IMAGES = random.randint(0, 9, (ROWS, 2, 2, 3)).astype("f")
IDS = random.randint(0, 10, (ROWS, 2)).astype("i")
LOGITS = random.rand(ROWS, 5, 3).astype("f")
BLANKS = np.log(np.array([0.1, 0.1, 0.8], "f")) * np.ones((ROWS, 5, 1), "f")
TABLE = random.rand(10, 3).astype("f")
WEIGHTS = random.rand(6, 2).astype("f")
HALVES = np.array([[0.5, -1.0], [3.0, 0.25], [0.0, 2.0], [-0.75, 8.0]], np.float16)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def to_f8(x):
    return ipu.f8_ops.convert_to_f8(x, ipu.f8_ops.create_metadata(ipu.f8_ops.Format.F143))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def spread(x):
    """A result without rows, once for each row."""
    return x[tf.newaxis] * tf.ones([ROWS] + [1] * len(x.shape))


def spread_rows(x):
    return np.broadcast_to(x, (ROWS, *np.shape(x)))


def counts(x):
    return np.array([(x < 0).sum(), (x >= 0).sum()], "f")


NO_LABELS, NO_LENGTHS, TIMES = np.zeros((ROWS, 1), "i"), np.zeros(ROWS, "i"), np.full(ROWS, 5, "i")


def ctc(op, x):
    return op(NO_LABELS, tf.transpose(x, [1, 0, 2]), NO_LENGTHS, TIMES, blank_index=2)


def decoded_length(op, x):
    return op(tf.transpose(x, [1, 0, 2]), TIMES, beam_width=2, blank_index=2)[1][:, 0]


def sampled(op, x):
    labels, weights = tf.zeros([ROWS, 1], tf.int64), tf.ones([3, 6])
    draws = (tf.constant([0, 1, 2], tf.int64), tf.ones([ROWS, 1]), tf.ones([3]))
    return op(weights, tf.zeros([3]), labels, x, num_sampled=3, num_classes=3, sampled_values=draws)


# By module and function: what it is called with, from which input, and what comes of it.
CASES = {
    "rand_ops.dropout": (X, lambda op, x: op(x, rate=0.0, seed=[1, 2]), lambda x: x),
    "embedding_ops.embedding_lookup": (IDS, lambda op, x: op(TABLE, x), lambda x: TABLE[x]),
    "internal_ops.print_tensor": (X, lambda op, x: op(x, "x") * 2.0, lambda x: x * 2),
    "internal_ops.fifo": (X, lambda op, x: op(x, 0), lambda x: x),
    "internal_ops.remap": (X, lambda op, x: op(x), lambda x: x),
    "internal_ops.remap_deduce": (X, lambda op, x: op(x), lambda x: x),
    "internal_ops.recompute": (X, lambda op, x: op(x), lambda x: x),
    "internal_ops.block_recompute": (X, lambda op, x: op(x), lambda x: x),
    "control_flow_ops.barrier": (X, lambda op, x: op([x, x + 1.0])[1], lambda x: x + 1),
    "cross_replica_ops.cross_replica_sum": (X, lambda op, x: op(x), lambda x: x),
    "cross_replica_ops.cross_replica_mean": (X, lambda op, x: op(x), lambda x: x),
    "cross_replica_ops.assume_equal_across_replicas": (X, lambda op, x: op(x), lambda x: x),
    "all_to_all_op.all_to_all": (X, lambda op, x: op(x, 0, 0, 1), lambda x: x),
    "all_to_all_op.all_gather": (X, lambda op, x: op(x, 1)[0], lambda x: x),
    "reduce_scatter_op.reduce_scatter": (X[:, 0], lambda op, x: op(x, replication_factor=1), lambda x: x),
    "nn_ops.gelu": (X, lambda op, x: op(x), gelu),
    "nn_ops.hard_sigmoid": (X, lambda op, x: op(x), lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "nn_ops.softmax": (X, lambda op, x: op(x), lambda x: np.exp(log_softmax(x))),
    "nn_ops.swish": (X, lambda op, x: op(x), lambda x: x * sigmoid(x)),
    "nn_ops.nce_loss": (X, sampled, lambda x: sampled(tf.nn.nce_loss, x)),
    "nn_ops.sampled_softmax_loss": (
        X,
        sampled,
        lambda x: sampled(functools.partial(tf.nn.sampled_softmax_loss, remove_accidental_hits=False), x),
    ),
    "nn_ops.ctc_loss": (LOGITS, ctc, lambda x: -x[:, :, 2].sum(1)),
    "nn_ops.ctc_loss_with_log_probs": (LOGITS, ctc, lambda x: -x[:, :, 2].sum(1)),
    "nn_ops.ctc_loss_v2": (LOGITS, ctc, lambda x: -log_softmax(x)[:, :, 2].sum(1)),
    "nn_ops.ctc_loss_with_logits": (LOGITS, ctc, lambda x: -log_softmax(x)[:, :, 2].sum(1)),
    "nn_ops.ctc_beam_search_decoder": (BLANKS, decoded_length, lambda x: np.zeros(ROWS)),
    "nn_ops.ctc_beam_search_decoder_with_log_probs": (BLANKS, decoded_length, lambda x: np.zeros(ROWS)),
    "image_ops.normalise_image": (
        IMAGES,
        lambda op, x: op(x, tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 0.5, 2.0]), 0.5)[..., :3],
        lambda x: (x * 0.5 - [1, 2, 3]) * [1, 0.5, 2],
    ),
    "math_ops.segment_sum": (
        X,
        lambda op, x: tf.tile(op(x, tf.constant([0, 0, 1, 1]), 2), [2, 1]),
        lambda x: np.tile(x.reshape(2, 2, 6).sum(1), [2, 1]),
    ),
    "math_ops.serialized_matmul": (
        X,
        lambda op, x: op(x, tf.constant(WEIGHTS), 2, "a_columns"),
        lambda x: x @ WEIGHTS,
    ),
    "statistics_ops.fixed_width_bins": (
        X,
        lambda op, x: spread(op(x, 3)),
        lambda x: spread_rows(np.histogram_bin_edges(x, 3)[1:-1]),
    ),
    "statistics_ops.histogram": (
        X,
        lambda op, x: spread(op(tf.reshape(x, [-1]), tf.constant([0.0]))),
        lambda x: spread_rows(counts(x)),
    ),
    "statistics_ops.histogram_update": (
        X,
        lambda op, x: spread(op(tf.constant([1.0, 2.0]), tf.reshape(x, [-1]), tf.constant([0.0]))),
        lambda x: spread_rows(counts(x) + [1, 2]),
    ),
    "statistics_ops.histogram_normalize": (np.abs(X[:, 0]), lambda op, x: op(x), lambda x: x / x.sum()),
    "slicing_ops.sequence_slice": (
        X,
        lambda op, x: op(tf.zeros([ROWS, 6]), x, [2], [1], [0], True),
        lambda x: np.concatenate([x[1:3], np.zeros([2, 6], "f")]),
    ),
    "slicing_ops.sequence_slice_pack": (
        X,
        lambda op, x: op(tf.zeros([ROWS, 6]), x, [1, 3], [3, 0], True),
        lambda x: np.concatenate([x[1:], x[:1]]),
    ),
    "slicing_ops.sequence_slice_unpack": (
        X,
        lambda op, x: op(x, [1, 3], [3, 0], ROWS),
        lambda x: np.concatenate([x[3:], x[:3]]),
    ),
    "f8_ops.convert_to_f8": (HALVES, lambda op, x: op(x, np.uint8(0)).data, lambda x: x.astype(F143).view(np.uint8)),
    "f8_ops.convert_from_f8": (HALVES, lambda op, x: op(to_f8(x)), lambda x: x),
    "f8_ops.f8_matmul": (HALVES, lambda op, x: op(to_f8(x), to_f8(HALVES.T)), lambda x: x @ HALVES.T),
    "custom_ops.codelet_expression_op": (X, lambda op, x: op(lambda a, b: a * b, x, x), lambda x: x * x),
    "custom_ops.precompiled_user_op": (
        X,
        lambda op, x: op([x], "libtwice.so", outs={"output_types": [tf.float32], "output_shapes": [[ROWS, 6]]})[0],
        lambda x: x * 2,
    ),
    "pipelining_ops.recomputation_checkpoint": (X, lambda op, x: op(x), lambda x: x),
    "grad_util_ops.capture_upstream_gradients": (X, lambda op, x: op(x), lambda x: x),
}

# What takes no tensor, is a decorator, or needs more than one IPU, a program in a file or a library in C.
OTHERS = {
    "application_compile_op": "experimental_application_compile_op",
    "custom_ops": "register_emulation cpu_user_operation",
    "embedded_runtime": "embedded_runtime_call embedded_runtime_start embedded_runtime_start_and_call "
    "embedded_runtime_stop",
    "embedding_ops": "create_host_embedding",
    "f8_ops": "create_metadata canonicalise_input canonicalise_output f8_conv_1d f8_conv_2d f8_conv_3d",
    "functional_ops": "function outlined_function",
    "internal_ops": "get_current_iteration_counter",
    "nn_ops": "multi_conv",
    "normalization_ops": "group_norm instance_norm layer_norm",
    "op_util": "accumulate_gradients bool_to_three_state get_accumulator_dtype get_activation_name",
    "pipelining_ops": "pipeline",
    "replication_ops": "replication_index",
    "summary_ops": "get_ipu_reports ipu_compile_summary",
    "within_replica_ops": "all_gather all_reduce reduce_scatter",
}


@pytest.fixture
def strategy(ipus):
    ipus(1)
    return ipu.ipu_strategy.IPUStrategy()


@pytest.fixture
def twice():
    ipu.custom_ops.register_emulation("libtwice.so", lambda x: x * 2)
    yield
    ipu.custom_ops.register_emulation("libtwice.so", None)


def op_of(path):
    module, name = path.split(".")
    return getattr(importlib.import_module(f"tensorflow.python.ipu.ops.{module}"), name)


def public_ops():
    for module in ipu.ops.MODULES:
        if not module.endswith("_grad"):
            found = importlib.import_module(f"tensorflow.python.ipu.ops.{module}")
            names = getattr(found, "__all__", None) or [
                name for name, value in vars(found).items() if getattr(value, "__module__", "") == found.__name__
            ]
            for name in names:
                if isinstance(getattr(found, name), types.FunctionType) and not name.startswith("_"):
                    yield f"{module}.{name}"


def test_all_public_ops_take_symbolic_tensors():
    known = {*CASES, *(f"{module}.{name}" for module, names in OTHERS.items() for name in names.split())}
    assert set(public_ops()) == known
    for path in known:
        assert keras_ops.find_op(f"ipu.ops.{path}") is not None, path


def test_models_of_all_ops(strategy, twice, capfd, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")  # XLA compiles them for longer
    inputs, outputs = [], []
    with strategy.scope():
        for path, (values, build, _) in CASES.items():
            inputs.append(keras.Input(values.shape[1:], len(values), path.replace(".", "_"), values.dtype))
            outputs.append(build(op_of(path), inputs[-1]))
        model = keras.Model(inputs, outputs)
        data = tf.data.Dataset.from_tensors((tuple(values for values, _, _ in CASES.values()),))
        results = model.predict(data)
    for result, (path, (values, _, expected)) in zip(results, CASES.items(), strict=True):
        np.testing.assert_allclose(result, expected(values), atol=1e-3, err_msg=path)
    assert "x: [[" in capfd.readouterr().err


def dropping():
    inputs = keras.Input([6])
    hidden = keras.layers.Dense(8, activation="relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(1)(ipu.rand_ops.dropout(hidden, 0.5)))


def test_models_with_dropout_train(strategy):
    with strategy.scope():
        model = dropping()
        model.compile("sgd", "mse", steps_per_execution=4)
        before = model.get_weights()
        data = tf.data.Dataset.from_tensors((X, np.ones([ROWS, 1], "f"))).repeat(4)
        assert np.isfinite(model.fit(data, verbose=0).history["loss"]).all()
        assert any((old != new).any() for old, new in zip(before, model.get_weights(), strict=True))
        keep = keras.Model(model.input, model.layers[2].output).predict(X, batch_size=ROWS)
        hidden = np.maximum(X @ model.get_weights()[0] + model.get_weights()[1], 0)
        assert_close(np.where(keep != 0, 2 * hidden, 0), keep)


@pytest.mark.parametrize("how", ["clone", "config", "json"])
def test_models_are_made_again_of_what_they_say(strategy, how):
    with strategy.scope():
        inputs = keras.Input([6])
        model = keras.Model(inputs, ipu.nn_ops.gelu(x=ipu.internal_ops.recompute(inputs) * 2.0, name="last"))
        made = {
            "clone": keras.models.clone_model,
            "config": lambda model: keras.Model.from_config(model.get_config()),
            "json": lambda model: keras.models.model_from_json(model.to_json()),
        }[how](model)
        assert_close(made.predict(X, batch_size=ROWS), gelu(X * 2))


def test_ops_in_pipeline_stages(ipus):
    ipus(2)
    with ipu.ipu_strategy.IPUStrategy().scope():
        inputs = keras.Input([6])
        with keras.ipu.PipelineStage(0):
            x = ipu.nn_ops.gelu(inputs)
        with keras.ipu.PipelineStage(1):
            x = ipu.nn_ops.swish(keras.layers.Dense(2, kernel_initializer="ones")(x))
        model = keras.Model(inputs, x)
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
        model.compile("sgd", "mse", steps_per_execution=4)
        rows = np.tile(X, [4, 1])
        model.fit(rows, np.zeros([16, 2], "f"), batch_size=4, verbose=0)
        hidden = gelu(rows) @ model.get_weights()[0] + model.get_weights()[1]
        assert_close(model.predict(rows, batch_size=4), hidden * sigmoid(hidden))


def test_collectives_of_replicas(ipus):
    ipus(2)
    with ipu.ipu_strategy.IPUStrategy().scope():
        inputs = keras.Input([6], 2)
        model = keras.Model(inputs, ipu.cross_replica_ops.cross_replica_sum(inputs))
        model.compile(steps_per_execution=2)
        assert_close(model.predict(X, batch_size=2), np.tile(X[:2] + X[2:], [2, 1]))


def test_ops_that_make_variables_are_refused_as_keras_does(strategy):
    with strategy.scope(), pytest.raises(ValueError, match="Variables were created within a Lambda layer"):
        ipu.normalization_ops.group_norm(keras.Input([6]))
