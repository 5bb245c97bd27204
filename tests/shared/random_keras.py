"""Random Keras models on the IPU against the same models by stock Keras: losses, metrics, predictions, weights.

A model is a subclass, functional or sequential, of blocks that loop and branch over tensors, add losses and metrics,
behave otherwise in training, make state in their first call, or are blocks of blocks; with one optimizer or two.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tf_ipu_shim import ipu, keras2

keras = keras2.public_module()
WIDTH, BATCH, BATCHES = 4, 4, 4
# A bias before batch normalization has a gradient of rounding errors, which a small epsilon would scale to full steps.
EPSILON = 1e-3
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(0.05, momentum=0.5),
    "adam": lambda: keras.optimizers.Adam(0.01, epsilon=EPSILON),
    "legacy": lambda: keras.optimizers.legacy.RMSprop(0.01, epsilon=EPSILON),
    "list": lambda: [keras.optimizers.SGD(0.05), keras.optimizers.Adam(0.01, epsilon=EPSILON)],
}
METHODS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")


@dataclasses.dataclass(frozen=True)
class Model:
    """A random model and what is done with it.

    Args:
        form: `"subclass"`, `"functional"` or `"sequential"`.
        blocks: kinds of blocks; a tuple is a block of blocks.
        outputs: `"one"`, `"list"` or `"dict"`; one, but for subclasses.
        optimizer: a key of `OPTIMIZERS`.
        own_step: whether the class has its own `train_step`, as it has with a list of optimizers.
        steps: `steps_per_execution`.
        accumulated: mini-batches to an update.
        methods: called in this order.
        seed: of weights and data.
    """

    form: str
    blocks: tuple[Any, ...]
    outputs: str
    optimizer: str
    own_step: bool
    steps: int
    accumulated: int
    methods: tuple[str, ...]
    seed: int

    @classmethod
    def draw(cls, source: random.Random) -> Model:
        """Draws a model.

        Args:
            source: of random numbers.
        """
        form = source.choice(["subclass", "subclass", "functional", "sequential"])
        kinds = [kind for kind in BLOCKS if kind != "state" or form == "subclass"]
        blocks: list[Any] = source.choices(kinds, k=source.randint(1, 4))
        if source.random() < 0.4:
            blocks.append(tuple(source.choices(kinds, k=2)))
        optimizer = source.choice(list(OPTIMIZERS)) if form == "subclass" else source.choice(list(OPTIMIZERS)[:3])
        own_step = optimizer == "list" or (form == "subclass" and source.random() < 0.2)
        return cls(
            form=form,
            blocks=tuple(blocks),
            outputs=source.choice(["one", "list", "dict"]) if form == "subclass" and not own_step else "one",
            optimizer=optimizer,
            own_step=own_step,
            steps=source.choice([1, 2, BATCHES]),
            accumulated=1 if own_step or source.random() < 0.7 else 2,
            methods=tuple(source.sample(METHODS, k=source.randint(1, 3)) + ["fit", "evaluate", "predict"]),
            seed=source.randrange(1000),
        )

    def data(self) -> tuple[np.ndarray, Any]:
        """Inputs and targets."""
        numbers = np.random.default_rng(self.seed)
        x = numbers.normal(size=(BATCH * BATCHES, WIDTH)).astype(np.float32)
        y = np.sin(x[:, :1])
        return x, {"one": y, "list": [y, -y], "dict": {"first": y, "second": -y}}[self.outputs]

    def made(self) -> Any:
        """The Keras model, compiled."""
        seeds = iter(range(self.seed, self.seed + 1000))
        blocks = [_block(kind, seeds) for kind in self.blocks]
        model: Any
        if self.form == "subclass":
            model = (_OwnStep if self.own_step else _Subclass)(blocks, self.outputs, seeds)
        elif self.form == "functional":
            inputs = hidden = keras.Input((WIDTH,), batch_size=BATCH)
            for block in blocks:
                hidden = block(hidden)
            model = keras.Model(inputs, _dense(seeds, 1)(hidden))
        else:
            model = keras.Sequential([*blocks, _dense(seeds, 1)])
        model.compile(OPTIMIZERS[self.optimizer](), "mse", metrics=["mae"])
        return model


def _dense(seeds: Any, units: int = WIDTH, **options: Any) -> Any:
    return keras.layers.Dense(units, kernel_initializer=keras.initializers.GlorotUniform(next(seeds)), **options)


class _Block(keras.layers.Layer):
    def __init__(self, seeds: Any) -> None:
        super().__init__()
        self.dense = _dense(seeds)


class _Plain(_Block):
    """A layer, with a penalty on its kernel."""

    def __init__(self, seeds: Any) -> None:
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
    """A loss and a metric of the mini-batch, and a loss of the weights alone."""

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
    """A penalty on what a layer gives."""

    def __init__(self, seeds: Any) -> None:
        super().__init__(seeds)
        self.dense.activity_regularizer = keras.regularizers.L2(0.05)

    def call(self, x: Any) -> Any:
        return self.dense(x)


class _Trained(_Block):
    """Computes otherwise in training, and has statistics of its own."""

    def __init__(self, seeds: Any) -> None:
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
        while tf.reduce_sum(x) > 1e6:
            x = x * 0.5
        return hidden


class _State(_Block):
    """A weight that is made in the first call."""

    def __init__(self, seeds: Any) -> None:
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


class _Nested(keras.layers.Layer):
    def __init__(self, blocks: list[Any]) -> None:
        super().__init__()
        self.blocks = blocks

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


def _block(kind: Any, seeds: Any) -> Any:
    return _Nested([_block(one, seeds) for one in kind]) if isinstance(kind, tuple) else BLOCKS[kind](seeds)


class _Subclass(keras.Model):
    def __init__(self, blocks: list[Any], outputs: str, seeds: Any) -> None:
        super().__init__()
        self.blocks, self.outputs_as = blocks, outputs
        self.heads = [_dense(seeds, 1) for _ in range(1 if outputs == "one" else 2)]

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        results = [head(x) for head in self.heads]
        return {"one": results[0], "list": results, "dict": dict(zip(["first", "second"], results))}[self.outputs_as]


class _OwnStep(_Subclass):
    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            predicted = self(x, training=True)
            loss = self.compiled_loss(y, predicted, regularization_losses=self.losses)
        if isinstance(self.optimizer, (list, tuple)):
            heads = self.heads[0].trainable_variables
            others = [one for one in self.trainable_variables if all(one is not head for head in heads)]
            parts = list(zip(self.optimizer, (others, heads)))
        else:
            parts = [(self.optimizer, self.trainable_variables)]
        for optimizer, variables in parts:
            if variables:
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.compiled_metrics.update_state(y, predicted)
        return {metric.name: metric.result() for metric in self.metrics}


def _accumulate(model: Any, x: np.ndarray, y: Any, number: int) -> None:
    """Trains by stock Keras with the mean gradient of so many mini-batches to an update."""
    totals: list[Any] = []
    for batch in range(BATCHES):
        part = slice(batch * BATCH, (batch + 1) * BATCH)
        x_part, y_part = tf.nest.map_structure(lambda one, part=part: tf.constant(one[part]), (x, y))
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x_part, y_part, model(x_part, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        totals = gradients if not totals else [one + other for one, other in zip(totals, gradients)]
        if (batch + 1) % number == 0:
            model.optimizer.apply_gradients(zip([one / number for one in totals], model.trainable_variables))
            totals = []


def _results(description: Model, on_ipu: bool) -> list[Any]:
    x, y = description.data()
    model = description.made()
    first = tf.nest.map_structure(lambda one: one[:BATCH], y)
    data = {"batch_size": BATCH, "verbose": 0}
    number = description.accumulated
    if on_ipu:
        model.compile(
            OPTIMIZERS[description.optimizer](),
            "mse",
            metrics=["mae"],
            steps_per_execution=max(description.steps, number),
        )
        if number > 1:
            model.set_gradient_accumulation_options(
                gradient_accumulation_steps_per_replica=number, gradient_accumulation_reduction_method="mean"
            )
    found: list[Any] = []
    for method in description.methods:
        if method == "fit" and number > 1:
            if on_ipu:
                model.fit(x, y, shuffle=False, **data)
            else:
                _accumulate(model, x, y, number)
        elif method == "fit":
            found.append(list(model.fit(x, y, epochs=2, shuffle=False, **data).history.values()))
        elif method == "evaluate":
            found.append(model.evaluate(x, y, **data))
        elif method == "predict":
            found.append(model.predict(x, **data))
        elif method == "predict_on_batch":
            found.append(model.predict_on_batch(x[:BATCH]))
        elif method == "test_on_batch" or number == 1:
            found.append(getattr(model, method)(x[:BATCH], first))
    found.append([weight.numpy() for weight in model.weights])
    return found


def check(description: Model) -> None:
    """Runs a model both ways and compares.

    Args:
        description: the model.
    """
    expected = _results(description, on_ipu=False)
    with ipu.ipu_strategy.IPUStrategy().scope():
        got = _results(description, on_ipu=True)
    flat, reference = tf.nest.flatten(got), tf.nest.flatten(expected)
    assert len(flat) == len(reference)
    for number, (one, other) in enumerate(zip(flat, reference)):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4, err_msg=f"result {number}")
