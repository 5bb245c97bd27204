"""Layers and model classes that random Keras models are put together from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tf_ipu_shim import keras2

keras = keras2.public_module()
WIDTH, TOKENS = 4, 10


def dense(seeds: Iterator[int], units: int = WIDTH, **options: Any) -> Any:
    """A dense layer whose initial kernel is the same each time."""
    return keras.layers.Dense(units, kernel_initializer=keras.initializers.GlorotUniform(next(seeds)), **options)


class _Block(keras.layers.Layer):
    def __init__(self, seeds: Iterator[int]) -> None:
        super().__init__()
        self.dense = dense(seeds)


class _Plain(_Block):
    """A layer, with a penalty on its kernel."""

    def __init__(self, seeds: Iterator[int]) -> None:
        super().__init__(seeds)
        self.dense.kernel_regularizer = keras.regularizers.L2(0.01)

    def call(self, x: Any) -> Any:
        return tf.tanh(self.dense(x))


class _Looping(_Block):
    """A loop over a tensor."""

    def call(self, x: Any) -> Any:
        for step in tf.range(3):
            if step > 0:
                x = tf.tanh(self.dense(x))
        return x


class _Branching(_Block):
    """A branch by the values of the mini-batch."""

    def call(self, x: Any) -> Any:
        hidden = self.dense(x)
        if tf.reduce_mean(hidden) > 0.0123:  # after batch normalization the mean is 0 but for rounding
            hidden = hidden * 0.5
        else:
            hidden = hidden - 0.1
        return hidden


class _Adding(_Block):
    """A loss and a metric of the mini-batch, and a loss of the weights only."""

    def build(self, shape: Any) -> None:
        self.dense.build(shape)
        self.add_loss(lambda: 0.01 * tf.reduce_sum(tf.abs(self.dense.kernel)))
        super().build(shape)

    def call(self, x: Any) -> Any:
        hidden = self.dense(x)
        self.add_loss(0.1 * tf.reduce_mean(hidden**2))
        self.add_metric(tf.reduce_max(hidden), name=f"largest_{self.name}", aggregation="mean")
        return hidden


class _Active(_Block):
    """A penalty on a layer's outputs."""

    def __init__(self, seeds: Iterator[int]) -> None:
        super().__init__(seeds)
        self.dense.activity_regularizer = keras.regularizers.L2(0.05)

    def call(self, x: Any) -> Any:
        return self.dense(x)


class _Trained(_Block):
    """Computes otherwise in training, and has statistics of its own."""

    def __init__(self, seeds: Iterator[int]) -> None:
        super().__init__(seeds)
        self.normal = keras.layers.BatchNormalization(momentum=0.5)

    def call(self, x: Any, training: Any = None) -> Any:
        hidden = self.normal(self.dense(x), training=training)
        return hidden * 0.5 if training else hidden


class _Decorated(_Block):
    """A `call` that is a function of TensorFlow."""

    @tf.function
    def call(self, x: Any) -> Any:
        hidden = self.dense(x)
        while tf.reduce_sum(tf.cast(x, tf.float32)) > 1e6:  # beyond float16
            x = x * 0.5
        return hidden


class _State(_Block):
    """A weight that is made in the first call."""

    def __init__(self, seeds: Iterator[int]) -> None:
        super().__init__(seeds)
        self.scale: Any = None

    def call(self, x: Any) -> Any:
        if self.scale is None:
            self.scale = tf.Variable(tf.fill([WIDTH], 0.5), name="scale")
        return self.dense(x) * self.scale


BLOCKS = {
    "plain": _Plain,
    "loop": _Looping,
    "branch": _Branching,
    "adds": _Adding,
    "active": _Active,
    "trained": _Trained,
    "decorated": _Decorated,
    "state": _State,
}
FLOAT32_BLOCKS = ("branch", "state")  # branches depend on rounding; a variable of one's own is not cast


class _Nested(keras.layers.Layer):
    def __init__(self, blocks: list[Any]) -> None:
        super().__init__()
        self.blocks = blocks

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


def block(kind: Any, seeds: Iterator[int]) -> Any:
    """A block of a kind of `BLOCKS`; a tuple of kinds is one of blocks."""
    return _Nested([block(one, seeds) for one in kind]) if isinstance(kind, tuple) else BLOCKS[kind](seeds)


class _Attending(keras.layers.Layer):
    """Passes the mask that it gets to two layers, and ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.supports_masking = True
        self.attention = keras.layers.Attention()
        self.pooled = keras.layers.GlobalAveragePooling1D()

    def call(self, x: Any, mask: Any = None) -> Any:
        return self.pooled(self.attention([x, x], mask=[mask, mask]), mask=mask)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None


class _Shortened(keras.layers.Layer):
    """Makes a mask of its own: the one before, without the last step."""

    def call(self, x: Any) -> Any:
        return x * 2.0

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        steps = tf.shape(x)[1]
        return tf.logical_and(mask, tf.range(steps)[tf.newaxis] < steps - 1)


FRONTS = ("lstm", "gru", "bidirectional", "pooled", "attending", "shortened", "every_step")
"""What is before the blocks of a model of sequences; `every_step` has an output and a mask for each step."""


def front(kind: str, seeds: Iterator[int]) -> list[Any]:
    """Layers from sequences to vectors, or to sequences."""
    layers = keras.layers

    def recurrent(make: Any, **options: Any) -> Any:
        return make(
            kernel_initializer=keras.initializers.GlorotUniform(next(seeds)),
            recurrent_initializer=keras.initializers.Orthogonal(seed=next(seeds)),
            **options,
        )

    if kind == "gru":
        table = keras.initializers.RandomUniform(-0.5, 0.5, seed=next(seeds))
        return [
            layers.Embedding(TOKENS, WIDTH, embeddings_initializer=table, mask_zero=True),
            recurrent(layers.GRU, units=WIDTH),
        ]
    masked = [layers.Masking()]
    if kind == "lstm":
        return [*masked, recurrent(layers.LSTM, units=WIDTH)]
    if kind == "bidirectional":
        return [*masked, layers.Bidirectional(recurrent(layers.SimpleRNN, units=WIDTH // 2))]
    if kind == "pooled":
        return [*masked, layers.TimeDistributed(dense(seeds)), layers.GlobalAveragePooling1D()]
    if kind == "attending":
        return [*masked, dense(seeds), _Attending()]
    if kind == "shortened":
        return [*masked, _Shortened(), recurrent(layers.LSTM, units=WIDTH)]
    return [*masked, recurrent(layers.LSTM, units=WIDTH, return_sequences=True), dense(seeds)]


class Subclass(keras.Model):
    """A subclassed model of layers in a row, with one head or two."""

    def __init__(self, blocks: list[Any], outputs: str, heads: list[Any]) -> None:
        super().__init__()
        self.blocks, self.outputs_as, self.heads = blocks, outputs, heads

    def call(self, x: Any) -> Any:
        for one in self.blocks:
            x = one(x)
        return as_outputs(self.outputs_as, [head(x) for head in self.heads])


def as_outputs(kind: str, values: Sequence[Any]) -> Any:
    """Arranges a value for each head as a model's outputs."""
    return {"one": values[0], "list": list(values), "dict": dict(zip(["first", "second"], values))}[kind]
