"""The CTC ops of `gen_popnn_ops`, computed by `nn_ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops import nn_ops


class PopnnCtcLoss(NamedTuple):
    """The loss of each sample, and the gradient of their sum."""

    loss: Any
    grad: Any


class PopnnCtcBeamSearch(NamedTuple):
    """Logarithms of probabilities, lengths and labels of the paths found."""

    label_probabilities: Any
    label_lengths: Any
    decoded_labels: Any


def popnn_ctc_loss_with_logits(
    data: Any, labels: Any, data_lengths: Any, label_lengths: Any, blank_index: int, out_dtype: Any, name: Any = None
) -> Any:
    """See `nn_ops.ctc_loss_v2`; the loss of each sample, and the gradient of their sum with regard to `data`."""
    return _call_ctc(nn_ops.ctc_loss_v2, data, labels, data_lengths, label_lengths, blank_index, out_dtype, name)


def popnn_ctc_loss_with_log_probs(
    data: Any, labels: Any, data_lengths: Any, label_lengths: Any, blank_index: int, out_dtype: Any, name: Any = None
) -> Any:
    """See `nn_ops.ctc_loss_with_log_probs`; the loss of each sample, and the gradient of their sum."""
    loss = nn_ops.ctc_loss_with_log_probs
    return _call_ctc(loss, data, labels, data_lengths, label_lengths, blank_index, out_dtype, name)


def popnn_ctc_beam_search_with_logits(
    data: Any, data_lengths: Any, blank_index: int, beam_width: int, top_paths: int, name: Any = None
) -> Any:
    """See `nn_ops.ctc_beam_search_decoder`."""
    decoded = nn_ops.ctc_beam_search_decoder(data, data_lengths, beam_width, top_paths, blank_index, name)
    return PopnnCtcBeamSearch(*decoded)


def popnn_ctc_beam_search_with_log_probs(
    data: Any, data_lengths: Any, blank_index: int, beam_width: int, top_paths: int, name: Any = None
) -> Any:
    """See `nn_ops.ctc_beam_search_decoder_with_log_probs`."""
    decode = nn_ops.ctc_beam_search_decoder_with_log_probs
    return PopnnCtcBeamSearch(*decode(data, data_lengths, beam_width, top_paths, blank_index, name))


def _call_ctc(
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
