"""Recurrent layers and CTC as `gen_popnn_ops` has them, computed by `ipu.ops`.

What Graphcore's layers hand to their backward ops is not kept here: `intermediates` is empty, and the wrappers of
backward ops compute it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim.building.ops import nn_ops, recurrences


class PopnnLstmLayer(NamedTuple):
    """The outputs `[time, batch, num_channels]`, the last cell state, and nothing."""

    output: Any
    output_c_state: Any
    intermediates: Any


class PopnnLstmLayerBackprop(NamedTuple):
    """Gradients of the operands."""

    inputs_backprop: Any
    input_h_state_backprop: Any
    input_c_state_backprop: Any
    kernel_backprop: Any
    biases_backprop: Any


class PopnnGRULayer(NamedTuple):
    """The outputs `[time, batch, num_channels]`, and nothing."""

    output: Any
    intermediates: Any


class PopnnGRULayerBackprop(NamedTuple):
    """Gradients of the operands."""

    inputs_backprop: Any
    initial_state_backprop: Any
    kernel_backprop: Any
    biases_backprop: Any


class PopnnAUGRULayerBackprop(NamedTuple):
    """Gradients of the operands."""

    inputs_backprop: Any
    initial_state_backprop: Any
    kernel_backprop: Any
    biases_backprop: Any
    att_backprop: Any


class PopnnCtcLoss(NamedTuple):
    """The loss of each sample, and the gradient of their sum."""

    loss: Any
    grad: Any


class PopnnCtcBeamSearch(NamedTuple):
    """Negative logarithms of probabilities, lengths and labels of the paths found."""

    label_probabilities: Any
    label_lengths: Any
    decoded_labels: Any


def popnn_lstm_layer(
    inputs: Any,
    input_h_state: Any,
    input_c_state: Any,
    kernel: Any,
    biases: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any = tf.float32,
    options: str = "{}",
    options_bwd: str = "{}",
    name: Any = None,
) -> Any:
    """See `recurrences.lstm`; time comes first, gates are input, forget, candidate and output."""
    with tf.name_scope(name or "PopnnLstmLayer"):
        return _lstm((inputs, input_h_state, input_c_state, kernel, biases), activation, recurrent_activation)


def popnn_lstm_layer_backprop(
    inputs: Any,
    input_h_state: Any,
    input_c_state: Any,
    kernel: Any,
    biases: Any,
    output: Any,
    output_c_state: Any,
    intermediates: Any,
    output_backprop: Any,
    output_c_state_backprop: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any,
    options: str = "{}",
    name: Any = None,
) -> Any:
    """The gradients of `popnn_lstm_layer`."""
    operands = (inputs, input_h_state, input_c_state, kernel, biases)
    with tf.name_scope(name or "PopnnLstmLayerBackprop"):
        return _gradients(
            PopnnLstmLayerBackprop,
            lambda *given: _lstm(given, activation, recurrent_activation)[:2],
            operands,
            (output_backprop, output_c_state_backprop),
        )


def popnn_dynamic_lstm_layer(
    inputs: Any,
    input_h_state: Any,
    input_c_state: Any,
    kernel: Any,
    biases: Any,
    seq_len: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    preserve_final_state: bool = False,
    partials_dtype: Any = tf.float32,
    options: str = "{}",
    options_bwd: str = "{}",
    name: Any = None,
) -> Any:
    """`popnn_lstm_layer` for sequences of different lengths; the state is the one at each sequence's end."""
    operands = (inputs, input_h_state, input_c_state, kernel, biases)
    with tf.name_scope(name or "PopnnDynamicLstmLayer"):
        return _lstm(operands, activation, recurrent_activation, seq_len)


def popnn_dynamic_lstm_layer_backprop(
    inputs: Any,
    input_h_state: Any,
    input_c_state: Any,
    kernel: Any,
    biases: Any,
    seq_len: Any,
    output: Any,
    output_c_state: Any,
    intermediates: Any,
    output_backprop: Any,
    output_c_state_backprop: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any,
    options: str = "{}",
    name: Any = None,
) -> Any:
    """The gradients of `popnn_dynamic_lstm_layer`."""
    operands = (inputs, input_h_state, input_c_state, kernel, biases)
    with tf.name_scope(name or "PopnnDynamicLstmLayerBackprop"):
        return _gradients(
            PopnnLstmLayerBackprop,
            lambda *given: _lstm(given, activation, recurrent_activation, seq_len)[:2],
            operands,
            (output_backprop, output_c_state_backprop),
        )


def popnn_gru_layer(
    inputs: Any,
    initial_state: Any,
    kernel: Any,
    biases: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any = tf.float32,
    reset_after: bool = False,
    options: str = "{}",
    options_bwd: str = "{}",
    name: Any = None,
) -> Any:
    """See `recurrences.gru`; time comes first, gates are update, reset and candidate."""
    with tf.name_scope(name or "PopnnGRULayer"):
        return _gru((inputs, initial_state, kernel, biases), activation, recurrent_activation, reset_after)


def popnn_gru_layer_backprop(
    inputs: Any,
    initial_state: Any,
    kernel: Any,
    biases: Any,
    output: Any,
    intermediates: Any,
    output_backprop: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any,
    reset_after: bool = False,
    options: str = "{}",
    name: Any = None,
) -> Any:
    """The gradients of `popnn_gru_layer`."""
    with tf.name_scope(name or "PopnnGRULayerBackprop"):
        return _gradients(
            PopnnGRULayerBackprop,
            lambda *given: _gru(given, activation, recurrent_activation, reset_after)[:1],
            (inputs, initial_state, kernel, biases),
            (output_backprop,),
        )


def popnn_dynamic_gru_layer(
    inputs: Any,
    initial_state: Any,
    kernel: Any,
    biases: Any,
    seq_len: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any = tf.float32,
    reset_after: bool = False,
    options: str = "{}",
    options_bwd: str = "{}",
    name: Any = None,
) -> Any:
    """`popnn_gru_layer` for sequences of different lengths."""
    with tf.name_scope(name or "PopnnDynamicGRULayer"):
        return _gru((inputs, initial_state, kernel, biases), activation, recurrent_activation, reset_after, seq_len)


def popnn_dynamic_gru_layer_backprop(
    inputs: Any,
    initial_state: Any,
    kernel: Any,
    biases: Any,
    seq_len: Any,
    output: Any,
    intermediates: Any,
    output_backprop: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any,
    reset_after: bool = False,
    options: str = "{}",
    name: Any = None,
) -> Any:
    """The gradients of `popnn_dynamic_gru_layer`."""
    with tf.name_scope(name or "PopnnDynamicGRULayerBackprop"):
        return _gradients(
            PopnnGRULayerBackprop,
            lambda *given: _gru(given, activation, recurrent_activation, reset_after, seq_len)[:1],
            (inputs, initial_state, kernel, biases),
            (output_backprop,),
        )


def popnn_augru_layer(
    inputs: Any,
    initial_state: Any,
    kernel: Any,
    biases: Any,
    seq_len: Any,
    att_score: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any = tf.float32,
    reset_after: bool = False,
    options: str = "{}",
    options_bwd: str = "{}",
    name: Any = None,
) -> Any:
    """`popnn_dynamic_gru_layer` with attention scores, `[time, batch]`."""
    operands = (inputs, initial_state, kernel, biases, att_score)
    with tf.name_scope(name or "PopnnAUGRULayer"):
        return _gru(operands, activation, recurrent_activation, reset_after, seq_len)


def popnn_augru_layer_backprop(
    inputs: Any,
    initial_state: Any,
    kernel: Any,
    biases: Any,
    seq_len: Any,
    att_score: Any,
    output: Any,
    intermediates: Any,
    output_backprop: Any,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    partials_dtype: Any,
    reset_after: bool = False,
    options: str = "{}",
    name: Any = None,
) -> Any:
    """The gradients of `popnn_augru_layer`."""
    with tf.name_scope(name or "PopnnAUGRULayerBackprop"):
        return _gradients(
            PopnnAUGRULayerBackprop,
            lambda *given: _gru(given, activation, recurrent_activation, reset_after, seq_len)[:1],
            (inputs, initial_state, kernel, biases, att_score),
            (output_backprop,),
        )


def popnn_ctc_loss_with_logits(
    data: Any, labels: Any, data_lengths: Any, label_lengths: Any, blank_index: int, out_dtype: Any, name: Any = None
) -> Any:
    """See `nn_ops.ctc_loss_v2`; the loss of each sample, and the gradient of their sum with regard to `data`."""
    return _ctc(nn_ops.ctc_loss_v2, data, labels, data_lengths, label_lengths, blank_index, out_dtype, name)


def popnn_ctc_loss_with_log_probs(
    data: Any, labels: Any, data_lengths: Any, label_lengths: Any, blank_index: int, out_dtype: Any, name: Any = None
) -> Any:
    """See `nn_ops.ctc_loss_with_log_probs`; the loss of each sample, and the gradient of their sum."""
    loss = nn_ops.ctc_loss_with_log_probs
    return _ctc(loss, data, labels, data_lengths, label_lengths, blank_index, out_dtype, name)


def popnn_ctc_beam_search_with_logits(
    data: Any, data_lengths: Any, blank_index: int, beam_width: int, top_paths: int, name: Any = None
) -> Any:
    """See `nn_ops.ctc_beam_search_decoder`."""
    found = nn_ops.ctc_beam_search_decoder(data, data_lengths, beam_width, top_paths, blank_index, name)
    return PopnnCtcBeamSearch(*found)


def popnn_ctc_beam_search_with_log_probs(
    data: Any, data_lengths: Any, blank_index: int, beam_width: int, top_paths: int, name: Any = None
) -> Any:
    """See `nn_ops.ctc_beam_search_decoder_with_log_probs`."""
    decode = nn_ops.ctc_beam_search_decoder_with_log_probs
    return PopnnCtcBeamSearch(*decode(data, data_lengths, beam_width, top_paths, blank_index, name))


def _lstm(operands: Sequence[Any], activation: str, recurrent_activation: str, seq_len: Any = None) -> Any:
    inputs, hidden, cell, kernel, biases = (tf.convert_to_tensor(operand) for operand in operands)
    outputs, _, last = recurrences.lstm(
        inputs, (hidden, cell), kernel, biases, activation, recurrent_activation, seq_len
    )
    return PopnnLstmLayer(outputs, last, tf.zeros([0], outputs.dtype))


def _gru(
    operands: Sequence[Any], activation: str, recurrent_activation: str, reset_after: bool, seq_len: Any = None
) -> Any:
    inputs, state, kernel, biases, *scores = (tf.convert_to_tensor(operand) for operand in operands)
    outputs, _ = recurrences.gru(
        inputs, state, kernel, biases, activation, recurrent_activation, reset_after, seq_len, *scores
    )
    return PopnnGRULayer(outputs, tf.zeros([0], outputs.dtype))


def _gradients(form: Any, function: Callable[..., Any], operands: Sequence[Any], upstream: Sequence[Any]) -> Any:
    operands = [tf.convert_to_tensor(operand) for operand in operands]
    with tf.GradientTape() as tape:
        tape.watch(operands)
        results = function(*operands)
    return form(*tape.gradient(list(results), operands, output_gradients=[tf.convert_to_tensor(u) for u in upstream]))


def _ctc(
    function: Callable[..., Any],
    data: Any,
    labels: Any,
    data_lengths: Any,
    label_lengths: Any,
    blank_index: int,
    out_dtype: Any,
    name: Any,
) -> Any:
    data = tf.convert_to_tensor(data)
    with tf.GradientTape() as tape:
        tape.watch(data)
        loss = function(labels, data, label_lengths, data_lengths, blank_index, out_dtype, name)
    return PopnnCtcLoss(loss, tf.cast(tape.gradient(loss, data), out_dtype))
