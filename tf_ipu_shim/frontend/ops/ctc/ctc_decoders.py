"""CTC prefix beam search over time-major scores, which XLA can compile."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops.ctc.ctc_losses import LOG_ZERO


class _Beams(NamedTuple):
    """The best prefixes so far, `[batch, beam_width]` each except the labels.

    An unused beam has length -1.
    """

    labels: Any  # [batch, beam_width, max_time]
    lengths: Any
    blank: Any  # log-probability of all paths that yield this prefix and end in a blank
    label: Any  # log-probability of those that end in the prefix's last label


def ctc_beam_search_decoder(
    logits: Any,
    logits_lengths: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    blank_index: int = -1,
    name: str | None = None,
) -> tuple[Any, Any, Any]:
    """Finds likely label sequences of unnormalised scores.

    Args:
        logits: `[max_time, batch, classes]`.
        logits_lengths: `[batch]`: how many of the time steps count.
        beam_width: how many prefixes are kept from step to step.
        top_paths: how many are returned.
        blank_index: the class of the blank; negative counts from the last class.
        name: the name of the op.

    Returns:
        Logarithms of probabilities `[batch, top_paths]`, lengths `[batch, top_paths]`, and labels `[batch, top_paths,
        max_time]` with the blank after each length. As in TensorFlow's decoder, the most likely first.

    Source: `tensorflow.python.ipu.nn_ops.ctc_beam_search_decoder`.

    Example:
        >>> logits = tf.constant([[[0.0, 5.0, 0.0]], [[0.0, 0.0, 5.0]]])  # one sample: class 1, then 2
        >>> probabilities, lengths, labels = ctc_beam_search_decoder(logits, [2], beam_width=8, blank_index=0)
        >>> labels.numpy().tolist()
        [[[1, 2]]]
    """
    logits = tf.convert_to_tensor(logits)
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    return _beam_search(log_probs, logits_lengths, beam_width, top_paths, blank_index, logits.dtype, name)


def ctc_beam_search_decoder_with_log_probs(
    log_probs: Any,
    input_lengths: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    blank_index: int = -1,
    name: str | None = None,
) -> tuple[Any, Any, Any]:
    """Finds likely label sequences of logarithms of probabilities; see `ctc_beam_search_decoder`.

    Args:
        log_probs: `[max_time, batch, classes]`.
        input_lengths: `[batch]`.
        beam_width: how many prefixes are kept from step to step.
        top_paths: how many are returned.
        blank_index: the class of the blank.
        name: the name of the op.

    Returns:
        As `ctc_beam_search_decoder`.

    Source: `tensorflow.python.ipu.nn_ops.ctc_beam_search_decoder_with_log_probs`.

    Example:
        >>> log_probs = tf.math.log([[[0.05, 0.9, 0.05]], [[0.05, 0.05, 0.9]]])
        >>> probabilities, lengths, labels = ctc_beam_search_decoder_with_log_probs(log_probs, [2], blank_index=0)
        >>> labels.numpy().tolist()
        [[[1, 2]]]
    """
    log_probs = tf.convert_to_tensor(log_probs)
    scores = tf.cast(log_probs, tf.float32)
    return _beam_search(scores, input_lengths, beam_width, top_paths, blank_index, log_probs.dtype, name)


def _beam_search(
    log_probs: Any, lengths: Any, width: int, top_paths: int, blank: int, dtype: Any, name: str | None
) -> tuple[Any, Any, Any]:
    if log_probs.shape.rank != 3 or None in log_probs.shape.as_list():
        raise ValueError(
            f"The beam search needs scores of a known shape [max_time, batch, classes], got {log_probs.shape}. Set the "
            "static shape, for example with tf.ensure_shape."
        )
    times, batch, classes = log_probs.shape.as_list()
    if not 1 <= top_paths <= width:
        raise ValueError(
            f"top_paths must be from 1 to beam_width ({width}), got {top_paths}. Choose a value in this range."
        )
    if not -classes <= blank < classes:
        raise ValueError(f"blank_index must be one of the {classes} classes, got {blank}. Pass one of these.")
    blank %= classes
    lengths = tf.cast(lengths, tf.int32)
    first = tf.tile(tf.equal(tf.range(width)[tf.newaxis], 0), [batch, 1])
    beams = _Beams(
        tf.fill([batch, width, times], blank),
        tf.where(first, 0, -1),
        tf.where(first, 0.0, LOG_ZERO),
        tf.fill([batch, width], LOG_ZERO),
    )

    def body(time: Any, beams: _Beams) -> Any:
        stepped = _extend_beams(beams, log_probs[time], blank)
        running = time < lengths
        selected = [
            tf.where(running[:, tf.newaxis, tf.newaxis] if new.shape.rank == 3 else running[:, tf.newaxis], new, old)
            for new, old in zip(stepped, beams)
        ]
        return time + 1, _Beams(*selected)

    _, beams = tf.while_loop(lambda time, beams: time < times, body, (0, beams), maximum_iterations=times)
    total = _log_add(beams.blank, beams.label)
    best, order = tf.math.top_k(total, top_paths)
    label_lengths = tf.maximum(tf.gather(beams.lengths, order, axis=1, batch_dims=1), 0)
    labels = tf.gather(beams.labels, order, axis=1, batch_dims=1)
    labels = tf.where(tf.range(times) < label_lengths[..., tf.newaxis], labels, blank)
    return tf.cast(best, dtype, name=name), label_lengths, labels


def _extend_beams(beams: _Beams, scores: Any, blank: int) -> _Beams:
    """Extends every beam by each label or none, and keeps the best."""
    batch, width, times = beams.labels.shape.as_list()
    classes = scores.shape.as_list()[1]
    total = _log_add(beams.blank, beams.label)
    at = tf.maximum(beams.lengths - 1, 0)[..., tf.newaxis]
    last = tf.where(beams.lengths > 0, tf.gather(beams.labels, at, axis=2, batch_dims=2)[..., 0], blank)

    stay_blank = total + scores[:, blank, tf.newaxis]
    repeated = beams.label + tf.gather(scores, last, axis=1, batch_dims=1)
    stay_label = tf.where(beams.lengths > 0, repeated, LOG_ZERO)

    # A repeated label extends the prefix only after a blank.
    is_last = tf.one_hot(last, classes, on_value=True, off_value=False)
    grown = tf.where(is_last, beams.blank[..., tf.newaxis], total[..., tf.newaxis]) + scores[:, tf.newaxis]
    grown = tf.where(tf.equal(tf.range(classes), blank), LOG_ZERO, grown)

    # If an extended prefix equals another beam, its paths are added to that beam.
    parent = _is_parent(beams)
    last_labels = tf.tile(last[:, tf.newaxis], [1, width, 1])
    merged = tf.where(parent, tf.gather(grown, last_labels, axis=2, batch_dims=2), LOG_ZERO)
    stay_label = _log_add(stay_label, tf.reduce_max(merged, axis=1))
    is_merged = tf.reduce_any(parent[..., tf.newaxis] & is_last[:, tf.newaxis], axis=2)
    grown = tf.where(is_merged, LOG_ZERO, grown)

    candidates = tf.concat([_log_add(stay_blank, stay_label), tf.reshape(grown, [batch, -1])], axis=1)
    best, chosen = tf.math.top_k(candidates, width)
    stays = chosen < width
    source = tf.where(stays, chosen, (chosen - width) // classes)
    label = (chosen - width) % classes

    def gather_source(values: Any) -> Any:
        return tf.gather(values, source, axis=1, batch_dims=1)

    lengths = gather_source(beams.lengths)
    possible = best > LOG_ZERO / 2
    is_end = tf.equal(tf.range(times), lengths[..., tf.newaxis])
    labels = tf.where(is_end & ~stays[..., tf.newaxis], label[..., tf.newaxis], gather_source(beams.labels))
    return _Beams(
        labels,
        tf.where(possible, tf.where(stays, lengths, lengths + 1), -1),
        tf.where(stays & possible, gather_source(stay_blank), LOG_ZERO),
        tf.where(possible, tf.where(stays, gather_source(stay_label), best), LOG_ZERO),
    )


def _is_parent(beams: _Beams) -> Any:
    """Returns which beams are others without their last label, `[batch, parent, child]`."""
    inside = tf.range(beams.labels.shape[2]) < beams.lengths[:, :, tf.newaxis]
    equal = tf.equal(beams.labels[:, :, tf.newaxis], beams.labels[:, tf.newaxis])
    same = tf.reduce_all(tf.logical_or(equal, ~inside[:, :, tf.newaxis]), axis=3)
    longer = tf.equal(beams.lengths[:, tf.newaxis], beams.lengths[:, :, tf.newaxis] + 1)
    alive = (beams.lengths >= 0)[:, :, tf.newaxis]
    return same & longer & alive


def _log_add(first: Any, second: Any) -> Any:
    return tf.maximum(tf.reduce_logsumexp(tf.stack([first, second]), axis=0), LOG_ZERO)
