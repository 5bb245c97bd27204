"""Random Keras models on the IPU against the same models by stock Keras: losses, metrics, predictions, weights.

A model is a subclass, functional or sequential, of blocks that loop and branch over tensors, add losses and metrics,
behave otherwise in training, make state in their first call, or are blocks of blocks; before them may be layers with
masks. It has losses, metrics, sample or class weights, callbacks, steps of its own, one optimizer or two, and computes
in float32 or in mixed precision.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from random_keras_blocks import BLOCKS, FLOAT32_BLOCKS, FRONTS, TOKENS, WIDTH, Subclass, as_outputs, block, dense, front
from random_keras_blocks import keras as keras
from random_keras_training import (
    CALLBACKS,
    CLASSES,
    LIMITS,
    LOSSES,
    METRICS,
    OPTIMIZERS,
    STEPS,
    STOCK_OPTIMIZERS,
    callbacks,
    compile_options,
    compiling,
    counting,
    has_counts,
    labels,
    with_steps,
)

from tf_ipu_shim import ipu

BATCH, BATCHES, LENGTH = 4, 4, 5
METHODS = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")
MIXED = "mixed_float16"


@dataclasses.dataclass(frozen=True)
class Model:
    """A random model and what is done with it.

    Args:
        form: `"subclass"`, `"functional"` or `"sequential"`.
        front: one of `FRONTS` for sequences with masks; empty for vectors.
        blocks: kinds of blocks; a tuple is a block of blocks.
        outputs: `"one"`, `"list"` or `"dict"`; one, but for subclasses.
        task: a key of `LOSSES`.
        compiled: losses and metrics, as `compiling` draws them.
        weights: `"sample"`, `"class"` or empty.
        optimizer: a key of `OPTIMIZERS`.
        own_steps: kinds of `STEPS`; `"train"` is among them with a list of optimizers.
        callbacks: kinds of `CALLBACKS` for `fit`.
        is_validated: whether `fit` evaluates after each epoch.
        is_dataset: whether `fit` takes a dataset.
        policy: of precision.
        steps: `steps_per_execution`.
        accumulated: mini-batches to an update.
        methods: called in this order.
        seed: of weights and data.
    """

    form: str
    front: str
    blocks: tuple[Any, ...]
    outputs: str
    task: str
    compiled: Mapping[str, Any]
    weights: str
    optimizer: str
    own_steps: tuple[str, ...]
    callbacks: tuple[str, ...]
    is_validated: bool
    is_dataset: bool
    policy: str
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
        policy = MIXED if source.random() < 0.2 else "float32"
        optimizer = source.choice([one for one in OPTIMIZERS if _is_possible(one, form, policy)])
        outputs = source.choice(["one", "list", "dict"]) if form == "subclass" else "one"
        task, sequence = source.choice(list(LOSSES)), source.choice([*[""] * len(FRONTS), *FRONTS])
        steps = tuple(kind for kind in STEPS if form != "sequential" and source.random() < 0.2)
        if optimizer == "list" and "train" not in steps:
            steps = ("train", *steps)
        weights = source.choice(["", "sample", "class" if _can_weight_classes(task, outputs, sequence) else "sample"])
        is_simple = "train" not in steps and policy != MIXED and weights != "class"
        accumulated = 2 if is_simple and source.random() < 0.25 else 1
        methods = (*source.sample(METHODS, k=source.randint(1, 3)), "fit", "evaluate", "predict")
        return cls(
            form=form,
            front=sequence,
            blocks=_draw_blocks(source, form, sequence, policy),
            outputs=outputs,
            task=task,
            compiled=compiling(source, task, outputs),
            weights=weights,
            optimizer=optimizer,
            own_steps=steps,
            callbacks=() if accumulated > 1 else _draw_callbacks(source, optimizer, methods),
            is_validated=accumulated == 1 and source.random() < 0.3,
            is_dataset=source.random() < 0.3,
            policy=policy,
            steps=source.choice([1, 2, BATCHES]),
            accumulated=accumulated,
            methods=methods,
            seed=source.randrange(1000),
        )

    def data(self) -> tuple[np.ndarray, Any, np.ndarray | None]:
        """Inputs, targets, and the weights of samples if there are."""
        numbers = np.random.default_rng(self.seed)
        samples = BATCH * BATCHES
        x = numbers.normal(size=(samples, *([LENGTH] if self.front else []), WIDTH)).astype(np.float32)
        base = x[..., :1] if not self.front or self.front == "every_step" else x[:, 0, :1]
        y = labels(self.task, base)
        other = labels(self.task, -base)
        if self.front:
            ended = np.arange(LENGTH) >= numbers.integers(2, LENGTH + 1, samples)[:, np.newaxis]
            x[ended] = 0
        if self.front == "gru":
            x = np.where(ended, 0, numbers.integers(1, TOKENS, (samples, LENGTH))).astype(np.int32)
        weights = numbers.uniform(0.2, 2.0, samples).astype(np.float32) if self.weights == "sample" else None
        return x, as_outputs(self.outputs, [y, other]), weights

    def compile(self, model: Any, on_ipu: bool, ties: int, **options: Any) -> None:
        """Compiles a model of `make`.

        Args:
            model: it.
            on_ipu: whether it runs there.
            ties: metrics that count samples take a near tie as right (1), as wrong (-1) or as it comes (0).
            options: of `compile`.
        """
        relative, beside = LIMITS[self.policy]
        metrics = METRICS[self.task]
        if ties:
            metrics = counting(self.task, lambda outputs: ties * (relative * tf.abs(outputs) + beside))
        arguments = compile_options(self.task, self.outputs, dict(self.compiled), metrics)
        optimizers = OPTIMIZERS if on_ipu else STOCK_OPTIMIZERS
        model.compile(optimizers[self.optimizer](), **arguments, **options)

    def make(self) -> Any:
        """The Keras model."""
        seeds = iter(range(self.seed, self.seed + 1000))
        layers = [*(front(self.front, seeds) if self.front else []), *(block(kind, seeds) for kind in self.blocks)]
        units = CLASSES if self.task == "classes" else 1
        heads = [dense(seeds, units, dtype="float32") for _ in range(1 if self.outputs == "one" else 2)]
        if self.form == "subclass":
            return with_steps(Subclass, self.own_steps)(layers, self.outputs, heads)
        if self.form == "sequential":
            return keras.Sequential([*layers, *heads])
        x = self.data()[0]
        inputs = hidden = keras.Input(x.shape[1:], batch_size=BATCH, dtype=x.dtype.name)
        for layer in layers:
            hidden = layer(hidden)
        return with_steps(keras.Model, self.own_steps)(inputs, heads[0](hidden))


def _is_possible(optimizer: str, form: str, policy: str) -> bool:
    """Mixed precision scales one optimizer, of which rounding errors must not become full steps."""
    if policy == MIXED:
        return optimizer in ("sgd", "clipped")
    return optimizer != "list" or form == "subclass"


def _can_weight_classes(task: str, outputs: str, sequence: str) -> bool:
    return task != "regression" and outputs == "one" and sequence != "every_step"


def _draw_blocks(source: random.Random, form: str, sequence: str, policy: str) -> tuple[Any, ...]:
    if sequence == "every_step":  # layers of one's own end a mask
        return ()
    kinds = [kind for kind in BLOCKS if kind != "state" or form == "subclass"]
    if policy == MIXED:
        kinds = [kind for kind in kinds if kind not in FLOAT32_BLOCKS]
    blocks: list[Any] = source.choices(kinds, k=source.randint(0 if sequence else 1, 3))
    return (*blocks, tuple(source.choices(kinds, k=2))) if source.random() < 0.3 else tuple(blocks)


def _draw_callbacks(source: random.Random, optimizer: str, methods: tuple[str, ...]) -> tuple[str, ...]:
    """Kinds that stock Keras takes: a list of optimizers has no learning rate."""
    left_out = ["schedule", "plateau"] if optimizer == "list" else []
    left_out += ["record"] if _has_single_batches(methods) else []  # stock's executions are single steps then
    kinds = [kind for kind in CALLBACKS if kind not in left_out]
    return tuple(source.sample(kinds, k=source.choice([0, 0, 1, 2])))


def _has_single_batches(methods: tuple[str, ...]) -> bool:
    """Whether there is a method that stock Keras only has for one step an execution."""
    return any(method.endswith("_on_batch") for method in methods)


def _accumulate(model: Any, data: tuple[Any, ...], number: int) -> None:
    """Trains by stock Keras with the mean gradient of so many mini-batches to an update."""
    totals: list[Any] = []
    for batch in range(BATCHES):
        part = slice(batch * BATCH, (batch + 1) * BATCH)
        x, y, weights = tf.nest.map_structure(
            lambda one, part=part: None if one is None else tf.constant(one[part]), data
        )
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True), weights)
        gradients = tape.gradient(loss, model.trainable_variables)
        if number > 1:  # rows of embeddings are summed as whole tables
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        totals = gradients if not totals else [one + other for one, other in zip(totals, gradients)]
        if (batch + 1) % number == 0:
            model.optimizer.apply_gradients(zip([one / number for one in totals], model.trainable_variables))
            totals = []


class _Run:
    """One model, by stock Keras or on an IPU, and what its methods return."""

    def __init__(self, description: Model, on_ipu: bool, ties: int = 0) -> None:
        self.description, self.on_ipu = description, on_ipu
        self.data, self.found = description.data(), list[Any]()
        self.model = description.make()
        number = description.accumulated
        is_single = not on_ipu and _has_single_batches(description.methods)
        steps = 1 if is_single else max(description.steps, number)
        description.compile(self.model, on_ipu, ties, steps_per_execution=steps)
        if on_ipu and number > 1:
            self.model.set_gradient_accumulation_options(
                gradient_accumulation_steps_per_replica=number, gradient_accumulation_reduction_method="mean"
            )

    def results(self) -> list[Any]:
        """Calls the methods; returns their results, the weights, and the loss scale if there is one."""
        x, y, weights = self.data
        first = [None if one is None else tf.nest.map_structure(lambda part: part[:BATCH], one) for one in self.data]
        for method in self.description.methods:
            if method == "fit":
                self._fit()
            elif method == "evaluate":
                self._add(self.model.evaluate(x, y, sample_weight=weights, batch_size=BATCH, verbose=0))
            elif method == "predict":
                self._add(self.model.predict(x, batch_size=BATCH, verbose=0))
            elif method == "predict_on_batch":
                self._add(self.model.predict_on_batch(first[0]))
            elif method == "test_on_batch":
                self._add(self.model.test_on_batch(*first))
            elif self.description.accumulated == 1:
                self._add(self.model.train_on_batch(*first, class_weight=self._class_weight()))
        self._add([weight.numpy() for weight in self.model.weights])
        self._add(float(getattr(self.model.optimizer, "loss_scale", 1.0)))
        return self.found

    def _add(self, result: Any) -> None:
        self.found.append(result)

    def _class_weight(self) -> dict[int, float] | None:
        return {0: 0.4, 1: 1.6, 2: 1.0} if self.description.weights == "class" else None

    def _fit(self) -> None:
        description, data = self.description, self.data
        if description.accumulated > 1 and not self.on_ipu:
            return _accumulate(self.model, data, description.accumulated)
        options: dict[str, Any] = {"class_weight": self._class_weight(), "verbose": 0}
        options["epochs"] = 1 if description.accumulated > 1 else 3
        if description.is_validated:
            options["validation_data"] = self._dataset()
        if description.callbacks:
            options["callbacks"] = callbacks(description.callbacks, self.found)
        if description.is_dataset:
            history = self.model.fit(self._dataset(), **options).history
        else:
            x, y, weights = data
            history = self.model.fit(x, y, batch_size=BATCH, shuffle=False, sample_weight=weights, **options).history
        if description.accumulated == 1:
            self._add(
                {name: values for name, values in history.items() if name != "lr"} | {"lr": history.get("lr", [])}
            )
        return None

    def _dataset(self) -> Any:
        x, y, weights = self.data
        y = tuple(y) if isinstance(y, list) else y  # which would be one tensor of a dataset
        data = (x, y) if weights is None else (x, y, weights)
        return tf.data.Dataset.from_tensor_slices(data).batch(BATCH, drop_remainder=True)


def _configure(nanoo: bool) -> None:
    """One IPU, on which overflows of float16 are infinite if the loss scale has to see them."""
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.floating_point_behaviour.nanoo = nanoo
    config.configure_ipu_system()


def check(description: Model) -> None:
    """Runs a model both ways and compares.

    An output is right within the limits of its policy, and a count of samples is right if such outputs give it: by
    stock Keras it is between that of near ties taken as wrong and as right. Stock's products of float16 overflow where
    a part of their sum does, and its loss scale falls. An IPU adds in float32: where only stock's fell, float32 tells.

    Args:
        description: the model.
    """
    limits = LIMITS[description.policy]
    expected = _results(description, on_ipu=False)
    got = _results(description, on_ipu=True)
    if description.policy == MIXED and got[-1] > expected[-1]:
        description = dataclasses.replace(description, policy="float32")
        expected, got = _results(description, on_ipu=False)[:-1], got[:-1]
    try:
        _compare(got, expected, expected, *limits)
    except AssertionError:
        if not has_counts(description.task, description.compiled):
            raise
        bounds = [_results(description, on_ipu=False, ties=taken)[: len(got)] for taken in (-1, 1)]
        _compare(got, *bounds, *limits)


def _results(description: Model, on_ipu: bool, ties: int = 0) -> list[Any]:
    """Runs a model with its policy; the last result is the loss scale."""
    _configure(nanoo=description.policy == MIXED)
    keras.mixed_precision.set_global_policy(description.policy)
    try:
        with ipu.ipu_strategy.IPUStrategy().scope() if on_ipu else contextlib.nullcontext():
            return _Run(description, on_ipu, ties).results()
    finally:
        keras.mixed_precision.set_global_policy(None)  # that of `floatx`, as before


def _compare(got: list[Any], least: list[Any], most: list[Any], rtol: float, atol: float) -> None:
    flat, lower, upper = map(tf.nest.flatten, (got, least, most))
    assert len(flat) == len(lower) == len(upper), f"{len(flat)} results, not {len(lower)}"
    for number, (one, low, high) in enumerate(zip(flat, lower, upper)):
        if isinstance(low, str):
            # Layers count through a process: the second model's names have other numbers.
            assert isinstance(one, str), f"result {number}: {one!r}, not {low!r}"
        else:
            np.testing.assert_allclose(one, np.clip(one, low, high), rtol=rtol, atol=atol, err_msg=f"result {number}")
