"""How long the lowering takes for large graphs, against XLA's own time to compile them.

All times are processor time: the sides of this benchmark cannot alternate.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.lowering_stopwatch import Stopwatch
from benchmarks.programs import forms
from benchmarks.results import Result
from benchmarks.runner import Call, OutputsDiffer, Settings, quartiles

TARGET = 0.1  # of XLA's time to compile the same programs
GROWTH_TARGET = 1.2  # time an op of a larger graph against that of the smallest
MOST_OPS_THAT_RUN = 3000  # up to here XLA compiles the programs, they run, and their outputs are compared
SHARDS = 4
SIZE = 8  # small matrices: only the number of ops counts


def run(settings: Settings) -> Iterator[Result]:
    os.environ["TF_IPU_SHIM_EXECUTION_MODE"] = "xla"  # in mode `kernels` nothing is compiled
    forms.configure(SHARDS)
    lowering = Stopwatch(settings.repeats)
    smallest: dict[str, float] = {}
    xla: dict[str, float] = {}
    _lower_only(SHARDS, _on_one)  # imports what lowers
    for wanted in (300,) if settings.quick else (1000, 3000, 10000):
        layers = max(SHARDS, round(wanted / _ops_per_layer()))
        cuts: dict[str, Callable[[int], Any]] = {
            "one IPU": _on_one,
            "4 shards": functools.partial(_contiguous, layers),
            "4 shards in turns": lambda layer: _shard(layer % SHARDS),
        }
        for name, on in cuts.items():
            lowering.runs = wanted <= MOST_OPS_THAT_RUN
            if lowering.runs:
                first = _first_call_seconds(layers, on)
                xla[name] = first - sum(lowering.whole)
            else:
                # XLA takes longer than this: its time grows faster than the graph.
                _lower_only(layers, on)
                xla[name] *= wanted / MOST_OPS_THAT_RUN
            yield _result(f"{wanted} ops, {name}: lowering", lowering.alone, xla[name])
            yield _result(f"{wanted} ops, {name}: lowering and memory plan", lowering.whole, xla[name])
            per_op = min(lowering.alone) / wanted
            if name in smallest:
                growth = per_op / smallest[name]
                yield Result(f"{wanted} ops, {name}: lowering an op", growth, growth, growth, "x", GROWTH_TARGET)
            smallest.setdefault(name, per_op)


def _result(name: str, spent: list[float], xla: float) -> Result:
    """Time spent against XLA's."""
    low, middle, high = quartiles(spent)
    return Result(
        name,
        middle / xla,
        low / xla,
        high / xla,
        "x",
        TARGET,
        ours_us=middle * 1e6,
        reference_us=xla * 1e6,
        best=min(spent) / xla,
        samples=len(spent),
    )


def _on_one(layer: int) -> Any:
    return contextlib.nullcontext()


def _contiguous(layers: int, layer: int) -> Any:
    return _shard(layer * SHARDS // layers)


def _shard(index: int) -> Any:
    from tf_ipu_shim import ipu

    return ipu.scopes.ipu_shard(index)


def _layers(x: Any, weights: list[Any], on: Callable[[int], Any]) -> Any:
    """Returns a deep net with the gradients of its weights."""
    import tensorflow as tf

    value = x
    for layer, weight in enumerate(weights):
        with on(layer):
            value = tf.tanh(tf.matmul(value, weight)) * 0.5 + value
    loss = tf.reduce_sum(value)
    return [loss, tf.add_n([tf.reduce_sum(gradient) for gradient in tf.gradients(loss, weights)])]


def _ops_per_layer() -> float:
    """The number of ops of one more layer."""
    import tensorflow as tf

    def ops(layers: int) -> int:
        with tf.Graph().as_default() as graph:
            weights = [tf.ones((SIZE, SIZE)) for _ in range(layers)]
            before = len(graph.get_operations())
            _layers(tf.ones((SIZE, SIZE)), weights, _on_one)
            return len(graph.get_operations()) - before

    return (ops(12) - ops(4)) / 8


def _values(layers: int) -> list[Any]:
    import tensorflow as tf

    generator = np.random.default_rng(0)
    return [tf.constant((generator.standard_normal((SIZE, SIZE)) / SIZE).astype(np.float32)) for _ in range(layers + 1)]


def _first_call_seconds(layers: int, on: Callable[[int], Any]) -> float:
    """The first call of a traced program on IPUs, less a later one: lowering, and XLA's compilation of all parts."""
    values = _values(layers)
    function = _program(values, on)
    seconds = _first_seconds(lambda: function(*values))
    ours = Call(lambda: function(*values)).outputs(1)[0]
    expected = _layers_by_op(values)
    if not np.allclose(np.stack(ours), expected, rtol=1e-3, atol=1e-3):
        raise OutputsDiffer(f"Lowering of {layers} layers: {ours} where TensorFlow's own ops give {expected}")
    return seconds


def _lower_only(layers: int, on: Callable[[int], Any]) -> None:
    import tensorflow as tf

    values = _values(layers)
    with contextlib.suppress(tf.errors.OpError):  # what LoweredOnly arrives as
        _program(values, on)(*values)
        raise AssertionError("The program ran although it was stopped after the lowering.")


def _program(values: list[Any], on: Callable[[int], Any]) -> Any:
    """Returns the traced function."""
    import tensorflow as tf

    from tf_ipu_shim import ipu

    def program(x: Any, *weights: Any) -> Any:
        with ipu.scopes.ipu_scope(forms.IPU):
            return ipu.ipu_compiler.compile(lambda x, *weights: _layers(x, list(weights), on), [x, *weights])

    return tf.function(program, autograph=False).get_concrete_function(*values)


def _layers_by_op(values: list[Any]) -> np.ndarray:
    import tensorflow as tf

    x, *weights = values
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        constants = [tf.constant(value.numpy()) for value in weights]
        fetched = _layers(tf.constant(x.numpy()), constants, _on_one)
        return np.stack(session.run(fetched))


def _first_seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    first = time.process_time() - start
    start = time.process_time()
    call()
    return first - (time.process_time() - start)
