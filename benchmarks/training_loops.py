"""Loops on the device, with feeds, against Python loops of stock TensorFlow; and what an element of a feed costs.

A call of either side is several training steps: one run of the program here, as many calls of a step there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.programs import forms, models
from benchmarks.results import Result
from benchmarks.runner import Call, Settings, compare

SMALL_MLP = 0.25  # of a Python loop's time
CONV = 1.0
FEED_US = 15.0
BATCHES = 16  # different ones in the dataset
PAIRS = 15  # samples take long here


def run(settings: Settings) -> Iterator[Result]:
    forms.configure()
    settings = dataclasses.replace(settings, pairs=min(settings.pairs, PAIRS))
    steps = 8 if settings.quick else 200
    conv = models.conv_step(4, 8, 2, "conv net") if settings.quick else models.conv_step(32, 28, 8, "conv net")
    for model, target, number in (
        (models.mlp_step(32, [784, 32, 10], "MLP 784-32-10"), SMALL_MLP, steps),
        (models.mlp_step(32, [784, 128, 10], "MLP 784-128-10"), None, steps),
        (conv, CONV, max(8, steps // 10)),
    ):
        for name, reference in (("Session.run", session_loop), ("a jit function", jit_loop)):
            yield compare(
                f"{model.name}, against a call of {name} a step",
                on_device(model, number),
                reference(model, number),
                settings,
                ratio=target if name == "Session.run" or target == CONV else None,
                tolerance=1e-3,
            )
    number = 64 if settings.quick else 2000
    settings = dataclasses.replace(settings, sample_seconds=0.0)  # a run of the loop without feeds takes next to none
    for shape in ((), (32, 784)):
        text = "x".join(map(str, shape)) or "scalar"
        yield compare(
            f"infeed, an element: {text}",
            infeed_loop(shape, number),
            bare_loop(shape, number),
            settings,
            extra_us=FEED_US,
        )
    yield compare(
        "outfeed, an element: scalar", outfeed_loop(number), bare_loop((), number), settings, extra_us=FEED_US
    )


def dataset(model: models.Model) -> Any:
    """Different batches of the model's inputs, again and again."""
    import tensorflow as tf

    shifted = [np.stack([np.roll(value, index, axis=0) for index in range(BATCHES)]) for value in model.inputs]
    with tf.device(forms.CPU):
        return tf.data.Dataset.from_tensor_slices(tuple(shifted)).repeat()


def on_device(model: models.Model, steps: int) -> Call:
    """One `Session.run` of a loop with an infeed and an outfeed, and one that dequeues the losses."""
    import tensorflow as tf

    from tf_ipu_shim import ipu

    tf1 = tf.compat.v1
    with tf.Graph().as_default():
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset(model))
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        with tf.device(forms.IPU):
            variables = [tf1.Variable(value, use_resource=True) for value in model.variables]
        with ipu.scopes.ipu_scope(forms.IPU):
            program = ipu.ipu_compiler.compile(
                lambda: ipu.loops.repeat(steps, lambda *x: outfeed.enqueue(model.function(variables, *x)), [], infeed)
            )
        losses = outfeed.dequeue()
        session = tf1.Session()
        session.run([tf1.global_variables_initializer(), infeed.initializer])

    def call() -> Any:
        session.run(program)
        return session.run(losses)

    return Call(call)


def session_loop(model: models.Model, steps: int) -> Call:
    """Returns a `Session.run` a step, on the CPU; the step reads its batch from a dataset's iterator."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf.device(forms.CPU):
        iterator = tf1.data.make_initializable_iterator(dataset(model))
        variables = [tf1.Variable(value, use_resource=True) for value in model.variables]
        loss = model.function(variables, *iterator.get_next())
        session = tf1.Session()
        session.run([tf1.global_variables_initializer(), iterator.initializer])
        step = session.make_callable(loss)
    return Call(lambda: np.stack([step() for _ in range(steps)]))


def jit_loop(model: models.Model, steps: int) -> Call:
    """Returns a call of a jit-compiled function a step, on the CPU, with a batch that Python takes from an iterator."""
    import tensorflow as tf

    with tf.device(forms.CPU):
        batches = iter(dataset(model))
        variables = [tf.Variable(value) for value in model.variables]
    step = tf.function(lambda *x: model.function(variables, *x), jit_compile=True, autograph=False)

    def call() -> Any:
        with tf.device(forms.CPU):
            return np.stack([loss.numpy() for loss in [step(*next(batches)) for _ in range(steps)]])

    return Call(call)


class PerElement(Call):
    """A call with many elements, whose time is that of one of them."""

    def __init__(self, function: Callable[[], Any], elements: int) -> None:
        super().__init__(function)
        self._elements = elements

    def seconds(self, calls: int) -> float:
        return super().seconds(calls) / self._elements


def infeed_loop(shape: tuple[int, ...], number: int) -> PerElement:
    """Returns a loop that uses one number of each element."""
    return _loop(number, shape, sends=False)


def outfeed_loop(number: int) -> PerElement:
    """Returns a loop that sends its sum in each iteration."""
    return _loop(number, None, sends=True)


def bare_loop(shape: tuple[int, ...], number: int) -> PerElement:
    """Returns the same sum without feeds."""
    return _loop(number, None, sends=False)


def _loop(number: int, fed: tuple[int, ...] | None, sends: bool) -> PerElement:
    import tensorflow as tf

    from tf_ipu_shim import ipu

    tf1 = tf.compat.v1
    with tf.Graph().as_default():
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue() if sends else None
        infeed = None
        if fed is not None:
            with tf.device(forms.CPU):
                ones = tf.data.Dataset.from_tensors(np.ones(fed, np.float32)).repeat()
            infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(ones)

        def body(total: Any, *element: Any) -> Any:
            total = total + (tf.reshape(element[0], [-1])[0] if element else 1.0)
            return total if outfeed is None else (total, outfeed.enqueue(total))

        with ipu.scopes.ipu_scope(forms.IPU):
            program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(number, body, [0.0], infeed))
        sent = None if outfeed is None else outfeed.dequeue()
        session = tf1.Session()
        if infeed is not None:
            session.run(infeed.initializer)

    def call() -> Any:
        (total,) = session.run(program)
        return total if sent is None else session.run(sent)[-1]

    return PerElement(call, number)
