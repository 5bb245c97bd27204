"""The recurrent ops of `gen_popnn_ops`, computed by `recurrences`.

What Graphcore's layers hand to their backward ops is not kept here: `intermediates` is empty, and the wrappers of
backward ops compute it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops import planner_options
from tf_ipu_shim.frontend.ops.planner_options import RecurrentOptions
from tf_ipu_shim.frontend.ops.recurrent import recurrences
from tf_ipu_shim.frontend.ops.recurrent.popnn_recurrent_legacy import legacy_form


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


@legacy_form("lstm")
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options, options_bwd=options_bwd)
    with tf.name_scope(name or "PopnnLstmLayer"):
        planned = _recurrent_options(partials_dtype, options, options_bwd)
        results = _lstm(
            (inputs, input_h_state, input_c_state, kernel, biases), activation, recurrent_activation, planned=planned
        )
        return planner_options.check_options(results, options, options_bwd)


@legacy_form("lstm", backward=True)
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options)
    operands = (inputs, input_h_state, input_c_state, kernel, biases)
    with tf.name_scope(name or "PopnnLstmLayerBackprop"):
        planned = _recurrent_options(partials_dtype, options, options)
        upstream = (output_backprop, output_c_state_backprop)
        results = _lstm_gradients(operands, upstream, planned, activation, recurrent_activation)
        return planner_options.check_options(results, options)


@legacy_form("dynamic_lstm")
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
    """`popnn_lstm_layer` for sequences of different lengths.

    The state is that of each sequence's end with `preserve_final_state`. Without, that of sequences which end before
    the last step is zero, and need not be kept up to there.
    """
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options, options_bwd=options_bwd)
    operands = (inputs, input_h_state, input_c_state, kernel, biases)
    with tf.name_scope(name or "PopnnDynamicLstmLayer"):
        planned = _recurrent_options(partials_dtype, options, options_bwd)
        results = _lstm(operands, activation, recurrent_activation, seq_len, preserve_final_state, planned=planned)
        if not preserve_final_state:
            steps = tf.shape(results.output)[0]
            is_full_length = tf.cast(seq_len, steps.dtype) >= steps
            last = tf.where(
                tf.reshape(is_full_length, [-1, 1]), results.output_c_state, tf.zeros_like(results.output_c_state)
            )
            results = results._replace(output_c_state=last)
        return planner_options.check_options(results, options, options_bwd)


@legacy_form("dynamic_lstm", backward=True)
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options)
    operands = (inputs, input_h_state, input_c_state, kernel, biases)
    with tf.name_scope(name or "PopnnDynamicLstmLayerBackprop"):
        planned = _recurrent_options(partials_dtype, options, options)
        upstream = (output_backprop, output_c_state_backprop)
        results = _lstm_gradients(operands, upstream, planned, activation, recurrent_activation, seq_len)
        return planner_options.check_options(results, options)


@legacy_form("gru")
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options, options_bwd=options_bwd)
    with tf.name_scope(name or "PopnnGRULayer"):
        planned = _recurrent_options(partials_dtype, options, options_bwd)
        operands = (inputs, initial_state, kernel, biases)
        results = _gru(operands, activation, recurrent_activation, reset_after, planned=planned)
        return planner_options.check_options(results, options, options_bwd)


@legacy_form("gru", backward=True)
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options)
    operands = (inputs, initial_state, kernel, biases)
    with tf.name_scope(name or "PopnnGRULayerBackprop"):
        planned = _recurrent_options(partials_dtype, options, options)
        results = _gru_gradients(operands, output_backprop, planned, activation, recurrent_activation, reset_after)
        return planner_options.check_options(results, options)


@legacy_form("dynamic_gru")
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options, options_bwd=options_bwd)
    with tf.name_scope(name or "PopnnDynamicGRULayer"):
        planned = _recurrent_options(partials_dtype, options, options_bwd)
        operands = (inputs, initial_state, kernel, biases)
        results = _gru(operands, activation, recurrent_activation, reset_after, seq_len, planned=planned)
        return planner_options.check_options(results, options, options_bwd)


@legacy_form("dynamic_gru", backward=True)
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options)
    operands = (inputs, initial_state, kernel, biases)
    with tf.name_scope(name or "PopnnDynamicGRULayerBackprop"):
        planned = _recurrent_options(partials_dtype, options, options)
        results = _gru_gradients(
            operands, output_backprop, planned, activation, recurrent_activation, reset_after, seq_len
        )
        return planner_options.check_options(results, options)


@legacy_form("augru")
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options, options_bwd=options_bwd)
    operands = (inputs, initial_state, kernel, biases, att_score)
    with tf.name_scope(name or "PopnnAUGRULayer"):
        planned = _recurrent_options(partials_dtype, options, options_bwd)
        results = _gru(operands, activation, recurrent_activation, reset_after, seq_len, planned=planned)
        return planner_options.check_options(results, options, options_bwd)


@legacy_form("augru", backward=True)
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
    _check_channels(num_channels, biases)
    _record_no_effect(is_training, options=options)
    operands = (inputs, initial_state, kernel, biases, att_score)
    with tf.name_scope(name or "PopnnAUGRULayerBackprop"):
        planned = _recurrent_options(partials_dtype, options, options)
        results = _gru_gradients(
            operands, output_backprop, planned, activation, recurrent_activation, reset_after, seq_len
        )
        return planner_options.check_options(results, options)


def _lstm(
    operands: Sequence[Any],
    activation: str,
    recurrent_activation: str,
    seq_len: Any = None,
    stops: bool = True,
    *,
    planned: RecurrentOptions,
) -> Any:
    inputs, hidden, cell, kernel, biases = (tf.convert_to_tensor(operand) for operand in operands)
    outputs, _, last = recurrences.lstm(
        inputs, (hidden, cell), kernel, biases, activation, recurrent_activation, seq_len, stops=stops, planned=planned
    )
    return PopnnLstmLayer(outputs, last, tf.zeros([0], outputs.dtype))


def _gru(
    operands: Sequence[Any],
    activation: str,
    recurrent_activation: str,
    reset_after: bool,
    seq_len: Any = None,
    *,
    planned: RecurrentOptions,
) -> Any:
    inputs, state, kernel, biases, *scores = (tf.convert_to_tensor(operand) for operand in operands)
    outputs, _ = recurrences.gru(
        inputs, state, kernel, biases, activation, recurrent_activation, reset_after, seq_len, *scores, planned=planned
    )
    return PopnnGRULayer(outputs, tf.zeros([0], outputs.dtype))


def _recurrent_options(partials_dtype: Any, options: str, options_bwd: str) -> RecurrentOptions:
    """The matmul planner options; unreadable options are refused elsewhere."""
    return RecurrentOptions(
        planner_options.recurrent_options(partials_dtype, options),
        planner_options.recurrent_options(partials_dtype, options_bwd),
    )


def _record_no_effect(is_training: bool, **options: str) -> None:
    """Records an argument without effect for the memory report and the log."""
    note_arguments("gen_popnn_ops", is_training=is_training)
    for name, given in options.items():
        planner_options.record_ignored_options("gen_popnn_ops", planner_options.parse_options(given), name)


def _check_channels(channels: int, biases: Any) -> None:
    shape = tf.convert_to_tensor(biases).shape
    if shape.rank is not None and not shape[-1:].is_compatible_with([channels]):
        raise ValueError(
            f"num_channels is {channels}, and the biases have the shape {shape}. Give biases [gates, num_channels]."
        )


def _lstm_gradients(operands: Sequence[Any], upstream: Sequence[Any], planned: RecurrentOptions, *options: Any) -> Any:
    def forward(*given: Any) -> Any:
        return _lstm(given, *options, planned=planned)[:2]

    return PopnnLstmLayerBackprop(*_gradients(forward, operands, upstream))


def _gru_gradients(operands: Sequence[Any], upstream: Any, planned: RecurrentOptions, *options: Any) -> Any:
    def forward(*given: Any) -> Any:
        return _gru(given, *options, planned=planned)[:1]

    form = PopnnAUGRULayerBackprop if len(operands) > 4 else PopnnGRULayerBackprop
    return form(*_gradients(forward, operands, (upstream,)))


def _gradients(function: Callable[..., Any], operands: Sequence[Any], upstream: Sequence[Any]) -> Any:
    operands = [tf.convert_to_tensor(operand) for operand in operands]
    with tf.GradientTape() as tape:
        tape.watch(operands)
        results = function(*operands)
    return tape.gradient(list(results), operands, output_gradients=[tf.convert_to_tensor(u) for u in upstream])
