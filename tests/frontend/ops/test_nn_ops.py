"""Ops for neural networks, against NumPy and stock TensorFlow."""

from __future__ import annotations

import itertools
from typing import Any

import ipu_tensorflow_addons.keras.layers as layers
import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure, run_session
from layer_harness import check, session
from nn_values import grouped, numbers
from slow_cases import slowly
from tf_ipu_shim.ipu import ipu_compiler, loops, scopes
from tf_ipu_shim.ipu.ops import nn_ops, normalization_ops, rand_ops, rnn_ops

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _one_ipu() -> None:
    configure()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_activations(dtype: Any) -> None:
    x = 3 * numbers(4, 5, dtype=dtype)
    tolerance = 2e-5 if dtype == np.float32 else 5e-3

    def ours(x: Any) -> Any:
        return [
            nn_ops.gelu(x),
            nn_ops.gelu(x, approximate=False),
            nn_ops.hard_sigmoid(x),
            nn_ops.swish(x, name="s"),
            nn_ops.softmax(x),
            nn_ops.softmax(x, stable=True),
        ]

    def reference(x: Any) -> Any:
        approximate = 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi).astype(dtype) * (x + dtype(0.044715) * x**3)))
        exact = 0.5 * x * (1 + tf.math.erf(x / np.sqrt(2).astype(dtype)))
        exponentials = tf.exp(x)
        soft = exponentials / tf.reduce_sum(exponentials, -1, keepdims=True)
        hard = tf.nn.relu(tf.minimum(dtype(0.2) * x + dtype(0.5), dtype(1)))
        return [approximate, exact, hard, x / (1 + tf.exp(-x)), soft, soft]

    check(ours, reference, [x], tolerance=tolerance)


def test_multi_conv() -> None:
    @nn_ops.multi_conv(options={"availableMemoryProportion": "0.2"})
    def both(x: Any, y: Any) -> Any:
        return tf.nn.conv2d(x, tf.ones([2, 2, 3, 4]), 1, "SAME"), {"y": 2 * y}

    check(
        lambda x: both(x, y=x)[0] + both(x, x)[1]["y"][..., :1],
        lambda x: tf.nn.conv2d(x, tf.ones([2, 2, 3, 4]), 1, "SAME") + 2 * x[..., :1],
        [numbers(1, 4, 4, 3)],
    )
    with pytest.raises(TypeError, match="Expected the multi_conv `options` to be a `dict`"):
        nn_ops.multi_conv(lambda: None, options=[])()


@pytest.mark.parametrize("between", [tf.identity, lambda x: tf.nn.relu(2 * x)])
def test_multi_conv_takes_independent_convolutions_only(between: Any) -> None:
    def conv(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.ones([1, 1, 3, 3]), 1, "SAME")

    def step(together: bool) -> Any:
        x = tf.ones([1, 4, 4, 3])
        if together:
            return nn_ops.multi_conv(lambda: conv(between(conv(x))))()
        first = nn_ops.multi_conv(lambda: conv(x))()
        return nn_ops.multi_conv(lambda: (conv(between(first)), conv(x)))()

    tf.function(step)(False)
    with pytest.raises(tf.errors.FailedPreconditionError, match="all convolutions to be independent of each other"):
        tf.function(step)(True)


def built_on(model: Any, fed: Any, on_ipu: bool) -> Any:
    """The results of a model, compiled for an IPU or as ops of the graph."""
    if not on_ipu:
        return model(fed)
    with scopes.ipu_scope(IPU):
        return ipu_compiler.compile(model, [fed])


@pytest.mark.parametrize("strided", [True, False])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("on_ipu", [True, False])
def test_group_norm_and_its_variables(strided: bool, axis: int, on_ipu: bool) -> None:
    x = numbers(2, 8, 3, 8)
    initializers = {"gamma": v1.constant_initializer(2.0), "beta": v1.constant_initializer(0.5)}

    def model(x: Any) -> Any:
        return [
            normalization_ops.group_norm(
                x, 4, axis, param_initializers=initializers, strided_channel_grouping=strided, scope="mine"
            ),
            normalization_ops.layer_norm(x, axis),
            normalization_ops.instance_norm(x, axis, training=False, center=False, epsilon=0.1),
        ]

    with tf.Graph().as_default():
        fed = v1.placeholder(np.float32, x.shape)
        built = built_on(model, fed, on_ipu)
        names = {variable.op.name: variable.shape.as_list() for variable in v1.global_variables()}
        with v1.Session() as running:
            running.run(v1.global_variables_initializer())
            group, layer, instance = running.run(built, {fed: x})
    assert names == {
        f"{scope}/{name}": [8] for scope, name in itertools.product(["mine", "LayerNorm"], ["beta", "gamma"])
    } | {"InstanceNorm/gamma": [8]}
    np.testing.assert_allclose(group, 2 * grouped(x, 4, axis, 1.53e-5, strided) + 0.5, 1e-4, 1e-4)
    np.testing.assert_allclose(layer, grouped(x, 1, axis, 1.53e-5, True), 1e-4, 1e-4)
    np.testing.assert_allclose(instance, grouped(x, 8, axis, 0.1, True), 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("shape", "arguments", "message"),
    [
        (None, {}, "has undefined rank"),
        ([2, 3, 4], {"channels_axis": 3}, "Axis is out of bounds"),
        ([2, 3, 4, 5], {"channels_axis": 2}, "Unsupported data format, group norm only supports"),
        ([2, 3, None], {}, "has undefined channel dimension"),
        ([2, 3, 4], {"groups": 5}, "Invalid groups 5 for 4 channels"),
        ([2, 3, 4], {"groups": 0}, "Invalid groups 0 for 4 channels"),
        ([2, 3, 4], {"groups": 3}, "4 channels is not commensurate with 3"),
    ],
)
def test_group_norm_refuses(shape: Any, arguments: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        normalization_ops.group_norm(v1.placeholder(tf.float32, shape), **arguments)


def test_dropout_has_one_mask_for_both_passes() -> None:
    x = np.abs(numbers(64, 32)) + 1

    def passes(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rand_ops.dropout(x, rate=0.25, ref=True)
        return y, tape.gradient(y, x)

    traced = tf.function(passes, autograph=False, jit_compile=True)
    with tf.device(IPU):
        on_ipu = [traced(tf.constant(x)) for _ in range(2)]
    for y, gradient in [passes(tf.constant(x)), *on_ipu]:
        kept = y.numpy() != 0
        assert 0.7 < kept.mean() < 0.8
        np.testing.assert_allclose(y, np.where(kept, x / 0.75, 0), 1e-6)
        np.testing.assert_allclose(gradient, np.where(kept, 1 / 0.75, 0), 1e-6)
    assert np.any(on_ipu[0][0].numpy() != on_ipu[1][0].numpy())


def test_dropout_of_whole_numbers_is_refused() -> None:
    """They cannot be scaled by 1 / (1 - rate)."""
    with pytest.raises(TypeError, match=r"elements by 1\.333 and needs a floating-point input, not int32"):
        rand_ops.dropout(tf.ones([4], tf.int32), 0.25)


def test_dropout_with_seed_and_noise_shape() -> None:
    x = np.ones([6, 16, 5], np.float32)

    def drop(x: Any, seed: Any = (3, 4)) -> Any:
        return rand_ops.dropout(x, 0.5, [6, 1, 5], seed)

    def drop_batch(x: Any) -> Any:
        return rand_ops.dropout(x, 0.5, [None, 1, 5], [3, 4])

    first = drop(x).numpy()
    assert np.array_equal(first, np.broadcast_to(first[:, :1], x.shape)) and set(np.unique(first)) == {0, 2}
    with tf.device(IPU):
        on_ipu = tf.function(drop, autograph=False, jit_compile=True)(tf.constant(x)).numpy()
        of_argument = tf.function(drop, autograph=False, jit_compile=True)(tf.constant(x), tf.constant([3, 4]))
    # XLA makes other numbers of the same bits than the CPU's kernels, which draw those of a seed that is written down.
    with tf.device("CPU"):
        by_xla = tf.function(drop, autograph=False, jit_compile=True)(tf.constant(x), tf.constant([3, 4]))
    np.testing.assert_array_equal(on_ipu, first)
    np.testing.assert_array_equal(of_argument, by_xla)
    for shape in (np.array([6, 1, 5]), tf.constant([6, 1, 5]), [None, 1, 5]):
        np.testing.assert_array_equal(rand_ops.dropout(x, 0.5, shape, [3, 4]).numpy(), first)
    batch = tf.TensorSpec([None, 16, 5])
    np.testing.assert_array_equal(tf.function(drop_batch, [batch], autograph=False)(x).numpy(), first)
    assert np.any(drop(x, (4, 4)).numpy() != first)
    np.testing.assert_array_equal(rand_ops.dropout(x, 0.0).numpy(), x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 1.0}, r"The rate must be in the range \[0, 1\)"),
        ({"rate": -0.1}, "The rate must be in the range"),
        ({"noise_shape": [1]}, "The length of noise_shape must equal the"),
        ({"noise_shape": [1, 2]}, "Dimension mismatch, 3 != 2"),
        ({"seed": [1, 2, 3]}, "Expected the seed to have a shape"),
    ],
)
def test_dropout_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rand_ops.dropout(tf.ones([2, 3]), **arguments)


def test_dropout_of_sdk_1_2_takes_a_scale_and_the_seed_first(monkeypatch: Any) -> None:
    x = np.ones([8, 8], np.float32)
    mask = rand_ops.dropout(x, 0.5, seed=[1, 2]).numpy() / 2
    with pytest.raises(TypeError, match=r"arguments \['scale'\]; under SDK 3.4 expected only ref"):
        rand_ops.dropout(x, 0.5, scale=3.0)
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "1.2")
    np.testing.assert_array_equal(rand_ops.dropout(x, [1, 2], 0.5).numpy(), 2 * mask)
    np.testing.assert_array_equal(rand_ops.dropout(x, [1, 2], 0.5, 1, None, 3.0).numpy(), 3 * mask)
    assert np.any(rand_ops.dropout(x, seed=[1, 2], seed_modifier=5).numpy() != 2 * mask)
    np.testing.assert_array_equal(rand_ops.dropout(x, rate=0.0, scale=3.0).numpy(), 3 * x)
    layer = layers.Dropout(0.5, None, [1, 2], 5)
    expected = rand_ops.dropout(x, seed=[1, 2], seed_modifier=5).numpy()
    np.testing.assert_array_equal(layers.Dropout.from_config(layer.get_config())(x, training=True).numpy(), expected)


def test_dropout_refuses_types() -> None:
    with pytest.raises(TypeError, match="two integers, but got float32"):
        rand_ops.dropout(tf.ones([2, 3]), seed=[1.0, 2.0])
    unknown = tf.function(lambda shape: rand_ops.dropout(tf.ones([2, 3]), noise_shape=shape), autograph=False)
    with pytest.raises(TypeError, match="whose value is not known yet"):
        unknown(tf.constant([2, 1]))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GRU reset_after"])
@pytest.mark.parametrize("on_ipu", [True, False])
def test_popnn_layers_against_keras(kind: str, on_ipu: bool) -> None:
    x = numbers(5, 3, 4)
    reset_after = kind.endswith("reset_after")
    keras = (tf.keras.layers.LSTM if kind == "LSTM" else tf.keras.layers.GRU)(
        6,
        return_sequences=True,
        return_state=True,
        time_major=True,
        **({} if kind == "LSTM" else {"reset_after": reset_after}),
    )
    start = [numbers(3, 6), numbers(3, 6) + 1][: 2 if kind == "LSTM" else 1]
    keras(x, initial_state=list(map(tf.constant, start)))
    values = [numbers(*weight.shape) for weight in keras.weights]
    keras.set_weights(values)
    expected = [value.numpy() for value in keras(x, initial_state=list(map(tf.constant, start)))]
    gates = 4 if kind == "LSTM" else 3
    kernel = np.concatenate(values[:2])
    biases = values[2].reshape(2, gates, 6).transpose(1, 0, 2) if reset_after else values[2].reshape(gates, 6)

    def model(x: Any) -> Any:
        if kind == "LSTM":
            layer = rnn_ops.PopnnLSTM(6, name="mine")
            state = v1.nn.rnn_cell.LSTMStateTuple(h=tf.constant(start[0]), c=tf.constant(start[1]))
        else:
            layer, state = rnn_ops.PopnnGRU(6, name="mine", reset_after=reset_after), tf.constant(start[0])
        outputs, last = layer(x, initial_state=state, training=True)
        return [outputs, *([last.h, last.c] if kind == "LSTM" else [last])]

    with tf.Graph().as_default():
        fed = v1.placeholder(np.float32, x.shape)
        built = built_on(model, fed, on_ipu)
        variables = {variable.op.name: variable for variable in v1.trainable_variables()}
        assert {name: variable.shape.as_list() for name, variable in variables.items()} == {
            "mine/kernel": list(kernel.shape),
            "mine/biases": list(biases.shape),
        }
        with v1.Session() as running:
            running.run(v1.global_variables_initializer())
            variables["mine/kernel"].load(kernel, running)
            variables["mine/biases"].load(biases, running)
            actual = running.run(built, {fed: x})
    for one, other in zip(actual, expected):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_sequence_lengths(kind: str) -> None:
    x, lengths = numbers(5, 3, 4), np.array([5, 2, 0], np.int32)
    plain = {"LSTM": rnn_ops.PopnnLSTM, "GRU": rnn_ops.PopnnGRU}[kind](6)
    dynamic = {"LSTM": rnn_ops.PopnnDynamicLSTM, "GRU": rnn_ops.PopnnDynamicGRU}[kind](6)
    dynamic(x, lengths)
    plain(x)
    plain.set_weights(dynamic.get_weights())
    outputs, state = dynamic(x, lengths)
    for sample, length in enumerate(lengths):
        if length == 0:
            assert not np.any(outputs.numpy()[:, sample])
            continue
        expected, expected_state = plain(x[:length, sample : sample + 1])
        np.testing.assert_allclose(outputs[:length, sample], expected[:, 0], 1e-5, 1e-6)
        assert not np.any(outputs.numpy()[length:, sample])
        for one, other in zip(tf.nest.flatten(state), tf.nest.flatten(expected_state)):
            np.testing.assert_allclose(one[sample], other[0], 1e-5, 1e-6)


def test_augru_against_numpy() -> None:
    x, lengths, scores = numbers(4, 2, 3), np.array([4, 4], np.int32), np.abs(numbers(4, 2)) % 1
    layer = rnn_ops.PopnnAUGRU(5)
    outputs, state = layer(x, lengths, scores)
    assert [weight.name.split("/")[1] for weight in layer.weights] == ["kernel:0", "bias_r_u:0", "bias_c:0"]
    kernel, *biases = layer.get_weights()
    biases = np.concatenate(biases)
    np.testing.assert_array_equal(biases, np.outer([1.0, 1.0, 0.0], np.ones(5)))  # open gates, unlike other layers'
    hidden = np.zeros([2, 5])
    sigmoid = lambda value: 1 / (1 + np.exp(-value))  # noqa: E731
    for time in range(4):
        projected = x[time] @ kernel[:3] + biases.reshape(-1)
        z = (1 - scores[time][:, None]) * sigmoid(projected[:, :5] + hidden @ kernel[3:, :5])
        r = sigmoid(projected[:, 5:10] + hidden @ kernel[3:, 5:10])
        candidate = np.tanh(projected[:, 10:] + (r * hidden) @ kernel[3:, 10:])
        hidden = z * hidden + (1 - z) * candidate
        np.testing.assert_allclose(outputs[time], hidden, 1e-4, 1e-5)
    np.testing.assert_allclose(state, hidden, 1e-4, 1e-5)
    swapped, _ = layer(x.transpose(1, 0, 2), lengths, scores.T, time_major=False)
    np.testing.assert_allclose(swapped, outputs, 1e-5, 1e-6)  # time first, whichever order the inputs have


@pytest.mark.parametrize(("release", "expected"), [("2.1", [1.0, 1.0, 0.0]), ("3.4", [0.0, 0.0, 0.0])])
def test_first_biases_of_a_dynamic_gru(release, expected, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    layer = rnn_ops.PopnnDynamicGRU(2)
    layer(numbers(4, 2, 3), np.array([4, 3], np.int32))
    np.testing.assert_array_equal(layer.get_weights()[1], np.outer(expected, np.ones(2)))


def test_popnn_layers_describe_themselves() -> None:
    layer = rnn_ops.PopnnLSTM(6, return_state=False)
    with pytest.raises(ValueError, match="input_size"):
        layer.input_size  # noqa: B018
    assert layer(numbers(2, 3, 4)).shape == (2, 3, 6)
    assert (layer.num_layers, layer.num_units, layer.input_size, layer.saveable) == (1, 6, 4, False)
    assert layer.canonical_weight_shape == [10, 24] and layer.canonical_bias_shapes == [4, 6]
    assert layer.state_shape(3) == ([3, 6], [3, 6]) and rnn_ops.PopnnGRU(6).state_shape(3) == [3, 6]
    assert rnn_ops.PopnnGRU(6, reset_after=True).canonical_bias_shapes == [3, 2, 6]
    with pytest.raises(ValueError, match="Invalid initial_state type: .* expecting `LSTMStateTuple`"):
        layer(numbers(2, 3, 4), initial_state=[numbers(3, 6)])
    with pytest.raises(ValueError, match="recurrent_activation"):
        rnn_ops.PopnnGRU(6, recurrent_activation="relu")


@pytest.mark.parametrize("kind", [rnn_ops.PopnnLSTM, slowly(rnn_ops.PopnnGRU)])
def test_training_in_a_loop(kind: Any) -> None:
    x, y = numbers(4, 3, 5), numbers(3, 2)

    def model(parts: Any, x: Any, y: Any) -> Any:
        def body(total: Any, x: Any, y: Any) -> Any:
            with v1.variable_scope("net", use_resource=True):
                outputs, _ = kind(6, name="rnn", weights_initializer=v1.constant_initializer(0.1))(x)
                normal = normalization_ops.group_norm(outputs[-1], 3, epsilon=0.1)
                scale = v1.get_variable("scale", initializer=numbers(6, 2))
                loss = tf.reduce_mean((tf.matmul(nn_ops.gelu(normal), scale) - y) ** 2)
            with tf.control_dependencies([v1.train.GradientDescentOptimizer(0.2).minimize(loss)]):
                return [total + loss, x, y]

        return loops.repeat(5, body, [tf.constant(0.0), x, y])[0] if parts.marked else _unrolled(body, x, y)

    ours = run_session(model, [x, y], on_ipu=True)
    theirs = run_session(model, [x, y])
    for name in ("net/scale", "net/rnn/kernel", "net/rnn/biases", "net/GroupNorm/gamma"):
        np.testing.assert_allclose(ours.variables[name], theirs.variables[name], 1e-3, 1e-4)
        assert np.any(np.abs(theirs.variables[name] - (0.1 if "kernel" in name else 0)) > 1e-3)
    np.testing.assert_allclose(ours.steps[0][0], theirs.steps[0][0], 1e-3)


def _unrolled(body: Any, x: Any, y: Any) -> Any:
    """The same five steps without a loop, one after the other."""
    total = tf.constant(0.0)
    for _ in range(5):
        with v1.variable_scope("", reuse=v1.AUTO_REUSE), tf.control_dependencies([total]):
            total = body(total, tf.identity(x), y)[0]
    return total


def test_dropout_trains_with_the_mask_it_ran_with() -> None:
    def passes(x: Any) -> Any:
        y = rand_ops.dropout(x, rate=0.5)
        return [y, tf.gradients(y, x)[0]]

    x = np.abs(numbers(16, 32)) + 1
    forward, backward = session(passes, [x])
    assert 0.3 < (forward != 0).mean() < 0.7
    np.testing.assert_allclose(backward, np.where(forward != 0, 2, 0))


@pytest.mark.parametrize("name", ["group_norm", "layer_norm", "instance_norm"])
def test_normalization_variables_are_in_scopes_of_their_names(name: str) -> None:
    """Checkpoints have them under these names."""
    expected = {"group_norm": "GroupNorm", "layer_norm": "LayerNorm", "instance_norm": "InstanceNorm"}[name]
    with tf.Graph().as_default():
        for _ in range(2):
            getattr(normalization_ops, name)(tf.ones([2, 3, 3, 4]))
        with tf.compat.v1.variable_scope("own"):
            getattr(normalization_ops, name)(tf.ones([2, 3, 3, 4]), scope="here")
        names = [variable.op.name for variable in tf.compat.v1.global_variables()]
    scopes = [expected, f"{expected}_1", "own/here"]
    assert names == [f"{scope}/{variable}" for scope in scopes for variable in ("beta", "gamma")]


@pytest.mark.parametrize(("epsilon", "warns"), [(1e-6, True), (1.52e-5, True), (1.53e-5, False), (None, False)])
def test_an_epsilon_that_half_precision_loses_is_warned_of(
    epsilon: float | None, warns: bool, monkeypatch: Any
) -> None:
    """The guide, "Warning when epsilon value is too low": below 1.53e-5."""
    from tf_ipu_shim.api.ipu.ops import normalization_ops as api

    said: list[str] = []
    monkeypatch.setattr(api.warnings, "warn", said.append)
    given = {} if epsilon is None else {"epsilon": epsilon}
    with tf.Graph().as_default():
        for name, function in (("GroupNorm", api.group_norm), ("LayerNorm", api.layer_norm)):
            function(tf.ones([2, 3, 3, 4]), scope=name, **given)
        api.instance_norm(tf.ones([2, 3, 3, 4]), **given)
    assert [text.split(" ", 1)[0] for text in said] == (["GroupNorm", "LayerNorm", "InstanceNorm"] if warns else [])
