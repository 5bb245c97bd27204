"""CTC, sampled classes and their losses, against NumPy and stock TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from layer_harness import check, session
from nn_values import all_paths, numbers
from tf_ipu_shim.ipu.ops import nn_ops

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _one_ipu() -> None:
    configure()


@pytest.mark.parametrize("true", [1, 2])
@pytest.mark.parametrize("subtracted", [True, False])
def test_logits_of_sampled_classes(true: int, subtracted: bool) -> None:
    weights, biases, inputs = numbers(5, 3), numbers(5), numbers(2, 3)
    labels, sampled = np.array([[0, 3], [4, 1]])[:, :true], np.array([1, 0, 2])
    of_labels, of_sampled = np.full(labels.shape, 0.5, np.float32), np.array([0.2, 0.4, 0.8], np.float32)
    logits, targets = nn_ops._compute_sampled_logits(
        weights, biases, tf.constant(labels), inputs, 3, 5, true, (sampled, of_labels, of_sampled), subtracted
    )
    everything = inputs @ weights.T + biases
    expected = np.concatenate([np.take_along_axis(everything, labels, 1), everything[:, sampled]], axis=1)
    if subtracted:
        expected -= np.log(np.concatenate([of_labels, np.tile(of_sampled, [2, 1])], axis=1))
    np.testing.assert_allclose(logits, expected, rtol=1e-5)
    np.testing.assert_allclose(targets, np.tile([1 / true] * true + [0] * 3, [2, 1]))


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_beam_search_against_all_paths(blank: int) -> None:
    logits = 2 * numbers(4, 3, 3)
    lengths = np.array([4, 3, 1], np.int32)
    log_probs = tf.nn.log_softmax(logits).numpy()

    def decode(logits: Any, lengths: Any) -> Any:
        return nn_ops.ctc_beam_search_decoder(logits, lengths, 60, 2, blank - 3 if blank else 0)

    with tf.device(IPU):
        on_ipu = tf.function(decode, autograph=False, jit_compile=True)(logits, lengths)
    both = (
        nn_ops.ctc_beam_search_decoder_with_log_probs(log_probs, lengths, 60, 2, blank),
        decode(logits, lengths),
        on_ipu,
    )
    in_a_session = [tf.constant(value) for value in session(decode, [logits, lengths])]
    for probabilities, found, labels in (*both, in_a_session):
        assert probabilities.shape == found.shape == (3, 2) and labels.shape == (3, 2, 4)
        for sample in range(3):
            best = all_paths(log_probs[: lengths[sample], sample], blank).most_common(2)
            for place, (sequence, probability) in enumerate(best):
                np.testing.assert_allclose(probabilities[sample, place], np.log(probability), 1e-4)
                assert found[sample, place] == len(sequence)
                assert labels[sample, place].numpy().tolist() == [*sequence] + [blank] * (4 - len(sequence))


@pytest.mark.ci_cases(1)
@pytest.mark.parametrize("blank", [0, 3, -2])
def test_ctc_loss(blank: int) -> None:
    logits = 2 * numbers(7, 4, 5)
    labels = np.array([[1, 2, 2], [4, 1, -1], [2, -1, -1], [-1, -1, -1]], np.int32)
    label_length, logit_length = np.array([3, 2, 1, 0], np.int32), np.array([7, 5, 6, 2], np.int32)

    def reference(logits: Any) -> Any:
        loss = tf.nn.ctc_loss(np.maximum(labels, 0), logits, label_length, logit_length, blank_index=blank)
        return [loss, tf.stop_gradient(loss)]

    def ours(logits: Any) -> Any:
        loss = nn_ops.ctc_loss_v2(labels, logits, label_length, logit_length, blank)
        log_probs = tf.stop_gradient(tf.nn.log_softmax(logits))
        return [loss, nn_ops.ctc_loss_with_log_probs(labels, log_probs, label_length, logit_length, blank)]

    check(ours, reference, [logits], tolerance=1e-4)


def test_ctc_gradient_is_that_of_the_scores() -> None:
    """In front of `log_softmax`, and behind it, each sample's weight and length counted."""
    labels, label_length, length, weights = [[1, 2], [2, 0]], [2, 1], [5, 3], tf.constant([3.0, -0.5])
    logits = tf.constant(numbers(5, 2, 4))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        log_probs = tf.nn.log_softmax(logits)
        expected = weights * tf.nn.ctc_loss(labels, logits, label_length, length, blank_index=0)
        found = weights * nn_ops.ctc_loss_with_log_probs(labels, log_probs, label_length, length, 0)
    for source in (log_probs, logits):
        np.testing.assert_allclose(tape.gradient(found, source), tape.gradient(expected, logits), 1e-4, 1e-6)
    assert not np.any(tape.gradient(found, log_probs)[3:, 1])  # behind the second sample's end


def test_ctc_loss_without_a_path_and_types() -> None:
    impossible = nn_ops.ctc_loss_v2([[1, 1]], numbers(2, 1, 3), [2], [2], 0)
    assert np.isinf(impossible.numpy()[0])
    assert nn_ops.ctc_loss_v2([[1]], numbers(2, 1, 3, dtype=np.float16), [1], [2], 0).dtype == tf.float16
    assert nn_ops.ctc_loss_v2([[1]], numbers(2, 1, 3, dtype=np.float16), [1], [2], 0, tf.float32).dtype == tf.float32
    for loss in (nn_ops.ctc_loss_v2, nn_ops.ctc_loss_with_log_probs, nn_ops.ctc_loss, nn_ops.ctc_loss_with_logits):
        with pytest.raises(ValueError, match="out_dtype cannot be float16 when dtype of"):
            loss([[1]], numbers(2, 1, 3), [1], [2], 0, out_dtype=tf.float16)
        with pytest.raises(ValueError, match="blank_index must be one of the 3 classes, got 3"):
            loss([[1]], numbers(2, 1, 3), [1], [2], 3)


def test_sampled_losses_with_a_given_sample() -> None:
    weights, biases, inputs = numbers(20, 4), numbers(20), numbers(6, 4)
    labels = np.array([[3], [5], [0], [9], [1], [19]], np.int64)
    sampled = [np.array([5, 2, 7, 1], np.int64), np.full([6, 1], 0.3, np.float32), np.full([4], 0.2, np.float32)]

    def losses(module: Any, name: str) -> Any:
        def run(weights: Any, biases: Any, inputs: Any) -> Any:
            arguments = (weights, biases, labels, inputs, 4, 20)
            stock = {"remove_accidental_hits": False} if module is tf.nn else {}
            return getattr(module, name)(*arguments, sampled_values=sampled, **stock)

        return run

    for name in ("sampled_softmax_loss", "nce_loss"):
        check(losses(nn_ops, name), losses(tf.nn, name), [weights, biases, inputs], floats=(1, 2))


def test_sample_is_log_uniform_without_repetition() -> None:
    def sample() -> Any:
        from tf_ipu_shim.frontend.ops import sampled_losses

        return sampled_losses._sample_candidates(tf.constant([[0]]), 3, 8, None)

    counts = np.zeros(8)
    for _ in range(400):
        chosen = sample()[0].numpy()
        assert len(set(chosen)) == 3
        counts[chosen] += 1
    stock = np.zeros(8)
    for _ in range(400):
        stock[tf.random.log_uniform_candidate_sampler([[0]], 1, 3, True, 8)[0].numpy()] += 1
    np.testing.assert_allclose(counts / 400, stock / 400, atol=0.15)


def test_tensorflow_s_ctc_names_graphcore_s() -> None:
    """Its ops that write in place have no conversion."""

    @tf.function(jit_compile=True)
    def loss(logits: Any) -> Any:
        return tf.nn.ctc_loss(tf.ones([2, 2], tf.int32), logits, [1, 2], [4, 4], blank_index=0)

    with (
        tf.device(IPU),
        pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)InplaceAdd.*ipu\.nn_ops\.ctc_loss_v2"),
    ):
        loss(tf.constant(numbers(4, 2, 3)))
