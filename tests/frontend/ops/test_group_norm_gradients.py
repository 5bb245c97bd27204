"""Gradients of group normalisation, first and second, against TensorFlow's of the same written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim.frontend.ops.norms.group_normalisation import group_normalise

pytestmark = pytest.mark.one_version

EPSILON = 0.1


def written_out(x: Any, gamma: Any, beta: Any, groups: int, strided: bool) -> Any:
    """Channels last; each group by itself."""
    channels = x.shape[-1]
    numbers = np.arange(channels)
    which = numbers % groups if strided else numbers // (channels // groups)
    parts: list[Any] = [None] * channels
    for group in range(groups):
        mine = np.flatnonzero(which == group)
        values = tf.gather(x, mine, axis=-1)
        axes = list(range(1, len(x.shape)))
        mean = tf.reduce_mean(values, axes, keepdims=True)
        variance = tf.reduce_mean((values - mean) ** 2, axes, keepdims=True)
        normal = (values - mean) / tf.sqrt(variance + EPSILON)
        for place, channel in enumerate(mine):
            parts[channel] = normal[..., place]
    y = tf.stack(parts, axis=-1)
    return y * (1.0 if gamma is None else gamma) + (0.0 if beta is None else beta)


def derivatives(norm: Any, x: Any, parameters: list[Any]) -> list[Any]:
    """Result, gradients, and gradients of a sum over these."""
    sources = [x, *(one for one in parameters if one is not None)]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            y = norm(x, *parameters)
            total = tf.reduce_sum(y**3)
        first = inner.gradient(total, sources)
        again = tf.add_n([tf.reduce_sum(tf.tanh(one / 8)) for one in first])
    return [y, *first, *outer.gradient(again, sources)]


@pytest.mark.ci_cases(5)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("given", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("strided", [False, True])
def test_first_and_second_derivatives(strided: bool, given: tuple[bool, bool], traced: bool) -> None:
    random = np.random.default_rng(1)
    x = tf.constant(random.normal(size=(2, 3, 6)), tf.float32)
    parameters = [tf.constant(random.normal(size=6), tf.float32) if one else None for one in given]

    def ours(x: Any, gamma: Any, beta: Any) -> Any:
        return group_normalise(x, gamma, beta, 2, 2, EPSILON, strided)

    def reference(x: Any, gamma: Any, beta: Any) -> Any:
        return written_out(x, gamma, beta, 2, strided)

    got, expected = (
        (tf.function(derivatives, autograph=False) if traced else derivatives)(norm, x, parameters)
        for norm in (ours, reference)
    )
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_gradients_of_halves_are_halves() -> None:
    x = tf.constant(np.random.default_rng(2).normal(size=(2, 8)), tf.float16)
    gamma = tf.ones([8], tf.float16)
    with tf.GradientTape() as tape:
        tape.watch([x, gamma])
        total = tf.reduce_sum(tf.cast(group_normalise(x, gamma, None, 2, 1, EPSILON), tf.float32) ** 2)
    got = tape.gradient(total, [x, gamma])
    wide = [tf.cast(x, tf.float32), tf.ones([8])]
    with tf.GradientTape() as tape:
        tape.watch(wide)
        total = tf.reduce_sum(written_out(*wide, None, 2, True) ** 2)
    expected = tape.gradient(total, wide)
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == tf.float16
        np.testing.assert_allclose(one, other, rtol=5e-3, atol=5e-3)
