"""One Keras model, program or session that eight threads use at a time: each call gets its own values.

Layers of ones pass inputs on, so the inputs determine the result of each call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_ipu_shim import ipu, keras2

_THREADS = 8
_BATCH, _ROWS = 4, 16
Call = Callable[[float], Any]


def found(kind: str, calls: int) -> Iterator[str]:
    """Calls one object from eight threads.

    Args:
        kind: a key of `KINDS`.
        calls: the calls of all threads.

    Yields:
        The fault of each call; empty if it has none.
    """
    call, expected = KINDS[kind]()
    call(0.0)  # compiles
    problems: list[str] = []

    def work(thread: int) -> None:
        for number in range(calls // _THREADS):
            value = float(thread * 1000 + number % 97)
            try:
                got = np.asarray(call(value))
            except Exception as error:
                problems.append(f"{kind} of {value}: {type(error).__name__}: {error}")
                continue
            right = np.array_equal(got, expected(value))
            problems.append("" if right else f"{kind} of {value}: {got.ravel()[:4]} of shape {got.shape}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from problems
    yield from ["a call has not ended"] * (calls // _THREADS * _THREADS - len(problems))


def _rows(value: float, number: int = _ROWS) -> np.ndarray:
    return np.full((number, 1), value, np.float32)


def _model() -> Any:
    keras = keras2.public_module()
    with _strategy().scope():
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", input_shape=(1,))
        model = keras.Sequential([layer])
        model.compile(keras.optimizers.SGD(0.0), "mse", steps_per_execution=2)
    return model


def _strategy() -> Any:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy()


def _predict() -> tuple[Call, Call]:
    model = _model()
    return lambda value: model.predict(_rows(value), batch_size=_BATCH, verbose=0), _rows


def _predict_on_batch() -> tuple[Call, Call]:
    model = _model()
    return lambda value: model.predict_on_batch(_rows(value, _BATCH)), lambda value: _rows(value, _BATCH)


def _evaluate() -> tuple[Call, Call]:
    model = _model()

    def call(value: float) -> Any:
        return model.evaluate(_rows(value), _rows(value - 3.0), batch_size=_BATCH, verbose=0)

    return call, lambda value: np.float32(9.0)


def _run() -> tuple[Call, Call]:
    strategy = _strategy()
    with strategy.scope():
        weight = tf.Variable(2.0)
    program = tf.function(lambda x: tf.reduce_sum(x * weight), jit_compile=True)

    def call(value: float) -> Any:
        with strategy.scope():
            return strategy.run(program, [tf.constant(_rows(value, _BATCH))])

    return call, lambda value: np.float32(2.0 * _BATCH * value)


def _session() -> tuple[Call, Call]:
    _strategy()
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [_BATCH, 1])
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            outputs = ipu.ipu_compiler.compile(lambda x: tf.reduce_sum(x) * 3.0, [x])
    session = v1.Session(graph=graph)
    return (
        lambda value: session.run(outputs, {x: _rows(value, _BATCH)})[0],
        lambda value: np.float32(3.0 * _BATCH * value),
    )


KINDS: dict[str, Callable[[], tuple[Call, Call]]] = {
    "predict": _predict,
    "predict_on_batch": _predict_on_batch,
    "evaluate": _evaluate,
    "run": _run,
    "session": _session,
}
