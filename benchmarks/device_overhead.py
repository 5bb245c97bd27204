"""The cost of an uncompiled op on the IPU device, compared with the same op on the CPU device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.programs import forms
from benchmarks.results import Result
from benchmarks.runner import Call, Settings, compare

TARGET = 1.05
CHAIN = 100  # ops one after the other
Op = Callable[[Any, Any], Any]


def run(settings: Settings) -> Iterator[Result]:
    import tensorflow as tf

    forms.configure(num_cpus=2)
    # TensorFlow has MatMul done by oneDNN on its CPU device, and Mul by Eigen.
    ops = {"Mul": lambda a, b: tf.raw_ops.Mul(x=a, y=b), "MatMul": lambda a, b: tf.raw_ops.MatMul(a=a, b=b)}
    for op_name, op in ops.items():
        for size in (4,) if settings.quick else (4, 256):
            what = f"{op_name} of {size}"
            for name, make in (
                ("eager", _eager),
                (f"function, {CHAIN} ops", _function),
                (f"Session, {CHAIN} ops", _session),
            ):
                ours, reference = make(op, size, forms.IPU), make(op, size, forms.CPU)
                yield compare(f"{name}: {what}", ours, reference, settings, ratio=TARGET)
            # A session pays for each device other than the one that it is fed from.
            second = _session(op, size, forms.SECOND_CPU)
            yield compare(f"{name}: {what}, against a second CPU device", ours, second, settings, ratio=TARGET)


def _value(size: int) -> np.ndarray:
    return (np.eye(size) + np.tri(size) / size**2).astype(np.float32)


def _eager(op: Op, size: int, device: str) -> Call:
    import tensorflow as tf

    with tf.device(device):
        a = tf.identity(tf.constant(_value(size)))

    def call() -> Any:
        with tf.device(device):
            return op(a, a)

    return Call(call)


def _chain(op: Op, a: Any) -> Any:
    x = a
    for _ in range(CHAIN):
        x = op(x, a)
    return x


def _function(op: Op, size: int, device: str) -> Call:
    import tensorflow as tf

    with tf.device(device):
        a = tf.identity(tf.constant(_value(size)))

    @tf.function(autograph=False)
    def chain(value: Any) -> Any:
        with tf.device(device):
            return _chain(op, value)

    def call() -> Any:
        with tf.device(device):
            return chain(a)

    return Call(call)


def _session(op: Op, size: int, device: str) -> Call:
    import tensorflow as tf

    tf1 = tf.compat.v1
    with tf.Graph().as_default():
        with tf.device(forms.CPU):
            fed = tf1.placeholder(tf.float32, (size, size))
        with tf.device(device):
            result = _chain(op, fed)
        running = tf1.Session(config=tf1.ConfigProto(device_count={"CPU": forms.num_cpus()}))
    value = _value(size)
    return Call(lambda: running.run(result, {fed: value}))
