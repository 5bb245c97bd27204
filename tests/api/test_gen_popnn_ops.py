"""`gen_popnn_ops` against NumPy, Keras and TensorFlow's CTC."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.poplar.ops import gen_popnn_ops

pytestmark = pytest.mark.one_version

random = np.random.default_rng(11)
TIMES, BATCH, SIZE, UNITS = 4, 3, 2, 5


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def numbers(*shape):
    return random.normal(size=shape).astype(np.float32)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def normalised(x, groups, strided, epsilon=0.01):
    """Channels last; and the statistics, `[batch, groups]`."""
    result, means, scales = np.empty_like(x), [], []
    channels = x.shape[-1]
    for sample in range(len(x)):
        for group in range(groups):
            members = [c for c in range(channels) if (c % groups if strided else c // (channels // groups)) == group]
            values = x[sample][..., members]
            means.append(values.mean())
            scales.append(1 / np.sqrt(values.var() + epsilon))
            result[sample][..., members] = (values - means[-1]) * scales[-1]
    return result, means, scales


@pytest.mark.parametrize("strided", [True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_group_norm(layout, strided):
    def laid(values):
        return values if layout == "NHWC" else values.transpose(0, 3, 1, 2)

    x, gamma, beta, upstream = numbers(2, 3, 2, 6), numbers(6), numbers(6), numbers(2, 3, 2, 6)
    plain, means, scales = normalised(x, 3, strided)
    how = (layout, 0.01, 3, strided)
    statistics = gen_popnn_ops.popnn_group_norm_statistics(laid(x), *how)
    close(statistics.mean, means)
    close(statistics.inv_std_dev, scales)
    trained = gen_popnn_ops.popnn_group_norm_training(laid(x), gamma, beta, *how)
    close(trained.output, laid(plain * gamma + beta))
    close(trained.inv_std_dev, scales)
    doubled = [2 * scale for scale in scales]
    close(
        gen_popnn_ops.popnn_group_norm_inference(laid(x), gamma, beta, means, doubled, *how),
        laid(2 * plain * gamma + beta),
    )

    to_x, to_gamma, to_beta = gen_popnn_ops.popnn_group_norm_grad(laid(x), gamma, means, scales, laid(upstream), *how)
    close(to_gamma, (upstream * plain).sum((0, 1, 2)))
    close(to_beta, upstream.sum((0, 1, 2)))
    step, direction = 1e-2, numbers(*x.shape)
    values = [
        ((normalised(moved, 3, strided)[0] * gamma) * upstream).sum()
        for moved in (x.astype(np.float64) + step * direction, x.astype(np.float64) - step * direction)
    ]
    slope = (values[0] - values[1]) / (2 * step)
    np.testing.assert_allclose((to_x.numpy() * laid(direction)).sum(), slope, rtol=2e-2, atol=1e-3)

    sources = [tf.constant(values) for values in (laid(x), gamma, beta)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        total = tf.reduce_sum(gen_popnn_ops.popnn_group_norm_training(*sources, *how).output * laid(upstream))
    for got, expected in zip(tape.gradient(total, sources), (to_x, to_gamma, to_beta), strict=True):
        close(got, expected)


def test_group_norm_needs_equal_groups():
    with pytest.raises(ValueError, match="6 channels .* do not make 4 equal groups"):
        gen_popnn_ops.popnn_group_norm_statistics(numbers(2, 6), "NHWC", 0.01, 4)
    with pytest.raises(ValueError, match="NHWC"):
        gen_popnn_ops.popnn_group_norm_statistics(numbers(2, 6), "CHWN", 0.01, 2)


def keras_run(layer, inputs, states, gates, kernel, biases, upstream, mask=None):
    """Outputs, last states, and gradients of inputs, states, kernel and biases, as a Keras layer has them."""
    layer.build((BATCH, TIMES, SIZE))
    layer.set_weights([kernel[:SIZE], kernel[SIZE:], biases.reshape(layer.get_weights()[2].shape)])
    inputs, states = tf.constant(inputs.transpose(1, 0, 2)), [tf.constant(state) for state in states]
    with tf.GradientTape() as tape:
        tape.watch([inputs, *states])
        outputs, *last = layer(inputs, initial_state=states, mask=mask)
        loss = tf.reduce_sum(outputs * upstream.transpose(1, 0, 2))
    to_inputs, *to_states, to_input_kernel, to_state_kernel, to_biases = tape.gradient(
        loss, [inputs, *states, *layer.trainable_variables]
    )
    gradients = [tf.transpose(to_inputs, [1, 0, 2]), *to_states, tf.concat([to_input_kernel, to_state_kernel], 0)]
    return tf.transpose(outputs, [1, 0, 2]), last, [*gradients, tf.reshape(to_biases, biases.shape)]


@pytest.mark.parametrize("dynamic", [False, True])
def test_lstm(dynamic):
    x, hidden, cell, upstream = numbers(TIMES, BATCH, SIZE), numbers(BATCH, UNITS), numbers(BATCH, UNITS), None
    upstream = numbers(TIMES, BATCH, UNITS)
    kernel, biases = numbers(SIZE + UNITS, 4 * UNITS), numbers(4, UNITS)
    lengths, mask, prefix = [np.array([2, 4, 1], np.int32)], None, "popnn_lstm"
    if dynamic:
        mask, prefix = tf.sequence_mask(lengths[0], TIMES), "popnn_dynamic_lstm"
    else:
        lengths = []
    layer = tf.keras.layers.LSTM(
        UNITS, return_sequences=True, return_state=True, unroll=True, zero_output_for_mask=True
    )
    outputs, last, gradients = keras_run(layer, x, [hidden, cell], 4, kernel, biases, upstream, mask)
    operands = (x, hidden, cell, kernel, biases, *lengths)
    whole = {"preserve_final_state": True} if dynamic else {}

    with tf.device(IPU):
        made = getattr(gen_popnn_ops, f"{prefix}_layer")(*operands, "tanh", "sigmoid", UNITS, True, **whole)
        back = getattr(gen_popnn_ops, f"{prefix}_layer_backprop")(
            *operands, *made, upstream, np.zeros_like(cell), "tanh", "sigmoid", UNITS, True, tf.float32
        )
    close(made.output, outputs)
    close(made.output_c_state, last[1])
    for mine, theirs in zip(back, gradients):
        close(mine, theirs)
    assert back._fields[-1] == "biases_backprop"


def test_last_states_that_are_not_preserved():
    """Those of sequences that end early are zero; outputs and gradients are the same."""
    lengths = np.array([2, TIMES, 1], np.int32)
    x, upstream = tf.constant(numbers(TIMES, BATCH, SIZE)), numbers(TIMES, BATCH, UNITS)
    operands = [numbers(BATCH, UNITS), numbers(BATCH, UNITS), numbers(SIZE + UNITS, 4 * UNITS), numbers(4, UNITS)]
    made, gradients = [], []
    for preserved in (True, False):
        with tf.device(IPU), tf.GradientTape() as tape:
            tape.watch(x)
            made.append(
                gen_popnn_ops.popnn_dynamic_lstm_layer(
                    x, *operands, lengths, "tanh", "sigmoid", UNITS, False, preserve_final_state=preserved
                )
            )
        gradients.append(tape.gradient(made[-1].output, x, upstream))
    kept, dropped = made
    close(dropped.output, kept.output)
    close(gradients[1], gradients[0])
    assert np.all(kept.output_c_state)
    close(dropped.output_c_state, np.where(lengths[:, None] == TIMES, kept.output_c_state, 0))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("reset_after", [False, True])
def test_gru(dynamic, reset_after):
    x, state, upstream = numbers(TIMES, BATCH, SIZE), numbers(BATCH, UNITS), numbers(TIMES, BATCH, UNITS)
    kernel = numbers(SIZE + UNITS, 3 * UNITS)
    biases = numbers(3, 2, UNITS) if reset_after else numbers(3, UNITS)
    lengths, mask, prefix = [], None, "popnn_gru"
    if dynamic:
        lengths, prefix = [np.array([2, 4, 1], np.int32)], "popnn_dynamic_gru"
        mask = tf.sequence_mask(lengths[0], TIMES)
    layer = tf.keras.layers.GRU(
        UNITS,
        return_sequences=True,
        return_state=True,
        unroll=True,
        reset_after=reset_after,
        zero_output_for_mask=True,
    )
    theirs = biases.transpose(1, 0, 2) if reset_after else biases  # Keras has the products in front of the gates
    outputs, _, gradients = keras_run(layer, x, [state], 3, kernel, theirs, upstream, mask)
    gradients[-1] = np.reshape(gradients[-1], theirs.shape)
    gradients[-1] = gradients[-1].transpose(1, 0, 2) if reset_after else gradients[-1]
    operands = (x, state, kernel, biases, *lengths)

    made = getattr(gen_popnn_ops, f"{prefix}_layer")(*operands, "tanh", "sigmoid", UNITS, True, reset_after=reset_after)
    back = getattr(gen_popnn_ops, f"{prefix}_layer_backprop")(
        *operands, *made, upstream, "tanh", "sigmoid", UNITS, True, tf.float32, reset_after=reset_after
    )
    close(made.output, outputs)
    for mine, expected in zip(back, gradients):
        close(mine, expected)


@pytest.mark.parametrize("reset_after", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu", "softmax", "sigmoid", "hard_sigmoid"])
def test_activations_of_each_gru_gate(activation, reset_after):
    x, state, kernel = numbers(TIMES, BATCH, SIZE), numbers(BATCH, UNITS), numbers(SIZE + UNITS, 3 * UNITS)
    biases = numbers(3, 2, UNITS) if reset_after else numbers(3, UNITS)
    theirs = biases.transpose(1, 0, 2) if reset_after else biases
    for gate in ("softmax", "tanh", "sigmoid", "hard_sigmoid"):
        layer = tf.keras.layers.GRU(UNITS, activation, gate, return_sequences=True, reset_after=reset_after)
        layer.build((BATCH, TIMES, SIZE))
        layer.set_weights([kernel[:SIZE], kernel[SIZE:], theirs.reshape(layer.get_weights()[2].shape)])
        expected = layer(tf.constant(x.transpose(1, 0, 2)), initial_state=tf.constant(state))
        made = gen_popnn_ops.popnn_gru_layer(
            x, state, kernel, biases, activation, gate, UNITS, True, reset_after=reset_after
        )
        close(made.output, tf.transpose(expected, [1, 0, 2]))


def test_attention_closes_the_update_gate():
    """A score of 0 leaves a GRU as it is; with a score of 1 nothing of the state before is kept."""
    x, state, kernel, biases = numbers(1, BATCH, SIZE), numbers(BATCH, UNITS), numbers(7, 15), numbers(3, UNITS)
    lengths = np.full(BATCH, 1, np.int32)
    how = ("tanh", "sigmoid", UNITS, True)
    zeros, ones = np.zeros((1, BATCH), np.float32), np.ones((1, BATCH), np.float32)
    plain = gen_popnn_ops.popnn_gru_layer(x, state, kernel, biases, *how)
    close(gen_popnn_ops.popnn_augru_layer(x, state, kernel, biases, lengths, zeros, *how).output, plain.output)
    reset = 1 / (1 + np.exp(-(np.concatenate([x[0], state], 1) @ kernel[:, 5:10] + biases[1])))
    candidate = np.tanh(np.concatenate([x[0], reset * state], 1) @ kernel[:, 10:] + biases[2])
    made = gen_popnn_ops.popnn_augru_layer(x, state, kernel, biases, lengths, ones, *how)
    close(made.output[0], candidate)
    back = gen_popnn_ops.popnn_augru_layer_backprop(
        x, state, kernel, biases, lengths, ones, *made, np.ones_like(made.output), *how, tf.float32
    )
    update = 1 / (1 + np.exp(-(np.concatenate([x[0], state], 1) @ kernel[:, :5] + biases[0])))
    close(back.att_backprop[0], (-update * (state - candidate)).sum(1))


def test_ctc():
    scores = numbers(6, 2, 4)
    labels, label_lengths, lengths = np.array([[1, 2], [3, 0]], np.int32), [2, 1], [6, 4]
    data = tf.constant(scores)
    with tf.GradientTape() as tape:
        tape.watch(data)
        expected = tf.nn.ctc_loss(labels, data, label_lengths, lengths, blank_index=0)
    made = gen_popnn_ops.popnn_ctc_loss_with_logits(data, labels, lengths, label_lengths, 0, tf.float32)
    close(made.loss, expected)
    close(made.grad, tape.gradient(expected, data))
    logs = gen_popnn_ops.popnn_ctc_loss_with_log_probs(
        tf.nn.log_softmax(data), labels, lengths, label_lengths, 0, tf.float32
    )
    close(logs.loss, expected)
    close(logs.grad, made.grad)  # both of the scores, as an IPU has it

    sure = np.full((4, 1, 3), -20, np.float32)
    sure[[0, 1, 2, 3], 0, [1, 0, 2, 2]] = 0
    for name in ("logits", "log_probs"):
        found = getattr(gen_popnn_ops, f"popnn_ctc_beam_search_with_{name}")(sure, [4], 0, 4, 1)
        assert found.label_lengths.numpy().tolist() == [[2]]
        assert found.decoded_labels.numpy()[0, 0, :2].tolist() == [1, 2]
        np.testing.assert_allclose(found.label_probabilities, [[0]], atol=1e-3)


@pytest.mark.parametrize(("name", "gates"), [("lstm", 4), ("gru", 3)])
def test_channels_that_do_not_fit_the_biases_are_refused(name, gates):
    states = [numbers(BATCH, UNITS)] * (2 if name == "lstm" else 1)
    operands = (numbers(TIMES, BATCH, SIZE), *states, numbers(SIZE + UNITS, gates * UNITS), numbers(gates, UNITS))
    with pytest.raises(ValueError, match=rf"num_channels is 7, and the biases have the shape \({gates}, {UNITS}\)"):
        getattr(gen_popnn_ops, f"popnn_{name}_layer")(
            *operands, activation="tanh", recurrent_activation="sigmoid", num_channels=7, is_training=True
        )


LEGACY_CALLS = [
    ("1.4", "lstm", {}),
    ("2.1", "dynamic_lstm", {"activation": "tanh", "recurrent_activation": "sigmoid"}),
    ("2.4", "lstm", {"activation": "tanh", "recurrent_activation": "sigmoid", "available_memory_proportion_fwd": 0.3}),
    (
        "2.4",
        "gru",
        {
            "activation": "tanh",
            "recurrent_activation": "sigmoid",
            "available_memory_proportion_fwd": None,
            "available_memory_proportion_bwd": None,
        },
    ),
    ("2.5", "gru", {"activation": "tanh", "recurrent_activation": "sigmoid", "options": "{}"}),
    ("2.4", "augru", {"activation": "tanh", "recurrent_activation": "sigmoid"}),
]


@pytest.mark.parametrize("release, kind, how", LEGACY_CALLS)
def test_last_states_are_outputs_up_to_sdk_2_5(monkeypatch, release, kind, how):
    """Against the newest release's op, whose outputs hold them, and gradients of a loss of the last state alone."""
    gates, lstm = (4, True) if "lstm" in kind else (3, False)
    lengths = np.array([2, TIMES, 1], np.int32)
    x, states = numbers(TIMES, BATCH, SIZE), [numbers(BATCH, UNITS) for _ in range(2 if lstm else 1)]
    further = [] if kind in ("lstm", "gru") else [lengths]
    further += [numbers(TIMES, BATCH)] if kind == "augru" else []
    operands = [x, *states, numbers(SIZE + UNITS, gates * UNITS), numbers(gates, UNITS), *further]
    forward = getattr(gen_popnn_ops, f"popnn_{kind}_layer")
    watched = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        newest = forward(watched, *operands[1:], "tanh", "sigmoid", UNITS, True)
        ends = lengths if further else np.full(BATCH, TIMES)
        last = tf.gather_nd(newest.output, [[end - 1, row] for row, end in enumerate(ends)])
        loss = tf.reduce_sum(last)
    expected = tape.gradient(loss, watched)

    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    made = forward(*operands, **how, num_channels=UNITS, is_training=True)
    assert made._fields == (
        "output",
        *(("output_h_state", "output_c_state") if lstm else ("output_state",)),
        "intermediates",
    )
    close(made.output, newest.output)
    close(made[1], last)
    zeros = [np.zeros_like(made.output), np.ones_like(states[0])] + [np.zeros_like(states[0])] * lstm
    back = getattr(gen_popnn_ops, f"popnn_{kind}_layer_backprop")(
        *operands, *made, *zeros, **how, num_channels=UNITS, is_training=True, partials_dtype=tf.float32
    )
    close(back.inputs_backprop, expected)
    assert back._fields[-1] == ("att_backprop" if kind == "augru" else "biases_backprop")


def test_arguments_of_another_release_are_refused(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    operands = [numbers(TIMES, BATCH, SIZE), numbers(BATCH, UNITS), numbers(SIZE + UNITS, 3 * UNITS), numbers(3, UNITS)]
    with pytest.raises(
        TypeError, match="popnn_gru_layer: SDK 2.4 has the arguments inputs, .*available_memory_proportion"
    ):
        gen_popnn_ops.popnn_gru_layer(*operands, "tanh", "sigmoid", UNITS, True, options_bwd="{}")
    with pytest.raises(TypeError, match="popnn_gru_layer: the argument num_channels is missing"):
        gen_popnn_ops.popnn_gru_layer(*operands, "tanh", "sigmoid")
    with pytest.raises(ValueError, match=r"num_channels is 4, and the biases have the shape \(3, 5\)"):
        gen_popnn_ops.popnn_gru_layer(*operands, "tanh", "sigmoid", 4, True)
