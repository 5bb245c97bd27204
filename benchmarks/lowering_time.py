"""How long the lowering takes for large graphs, against XLA's own time to compile them."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import forms
from benchmarks.results import Result
from benchmarks.runner import Call, OutputsDiffer, Settings, quartiles

TARGET = 0.1  # of XLA's time to compile the same function unsharded on the CPU
GROWTH_TARGET = 1.2  # time per op of a larger graph against that of the smallest
FEWEST_OPS = 1000  # up to here the lowered program also runs, and its outputs are compared
MOST_OPS_FOR_XLA = 3000
SHARDS = 4
SIZE = 8  # small matrices: only the number of ops counts


def run(settings: Settings) -> Iterator[Result]:
    forms.configure(SHARDS)
    lowering = _Stopwatch(settings.repeats)
    smallest: dict[str, float] = {}
    xla = 0.0
    for wanted in (300,) if settings.quick else (1000, 3000, 10000):
        layers = max(SHARDS, round(wanted / _ops_per_layer()))
        if wanted > MOST_OPS_FOR_XLA:
            xla *= wanted / MOST_OPS_FOR_XLA  # XLA itself takes longer: its time grows faster than the graph
        else:
            xla = _compile_seconds(layers)
        cuts: dict[str, Callable[[int], Any]] = {
            "one IPU": lambda layer: contextlib.nullcontext(),
            "4 shards": functools.partial(_contiguous, layers),
            "4 shards in turns": lambda layer: _shard(layer % SHARDS),
        }
        for name, on in cuts.items():
            more = {}
            lowering.runs = wanted <= FEWEST_OPS
            if lowering.runs:
                more["first call in seconds"] = _first_call_seconds(layers, on)
            else:
                _lower_only(layers, on)
            spent = lowering.seconds
            low, middle, high = quartiles(spent)
            yield Result(
                f"{wanted} ops, {name}: lowering to XLA's time",
                middle / xla,
                low / xla,
                high / xla,
                "x",
                TARGET,
                ours_us=middle * 1e6,
                reference_us=xla * 1e6,
                best=min(spent) / xla,
                samples=len(spent),
                more=more,
            )
            per_op = min(spent) / wanted
            if name in smallest:
                growth = per_op / smallest[name]
                yield Result(
                    f"{wanted} ops, {name}: time a op to the smallest's", growth, growth, growth, "x", GROWTH_TARGET
                )
            smallest.setdefault(name, per_op)


class _LoweredOnly(Exception):
    """Ends a first run before XLA compiles, which takes minutes for large graphs."""


class _Stopwatch:
    """Measures what the plugin spends in the lowering, parsing and serialising included.

    Args:
        repeats: how often to lower each program.

    Attributes:
        runs: whether the program runs afterwards.
        seconds: for the last program, what each lowering of it took.
    """

    def __init__(self, repeats: int) -> None:
        from tf_ipu_shim import plugin
        from tf_ipu_shim.lowering import installation
        from tf_ipu_shim.runtime import devices

        self._library = plugin.load()
        self._repeats = repeats
        self.runs = True
        self.seconds: list[float] = []
        installation.install(self, devices.get)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def set_lowering(self, lower: Callable[[Any, bytes], bytes]) -> None:
        """What the lowering believes to be the plugin's."""

        def timed(call: Any, request: bytes) -> bytes:
            self.seconds = []
            for _ in range(self._repeats):
                start = time.perf_counter()
                answer = lower(call, request)
                self.seconds.append(time.perf_counter() - start)
            if not self.runs:
                raise _LoweredOnly
            return answer

        self._library.set_lowering(timed)


def _contiguous(layers: int, layer: int) -> Any:
    return _shard(layer * SHARDS // layers)


def _shard(index: int) -> Any:
    from tf_ipu_shim import ipu

    return ipu.scopes.ipu_shard(index)


def _layers(x: Any, weights: list[Any], on: Callable[[int], Any]) -> Any:
    """A deep net with the gradients of its weights."""
    import tensorflow as tf

    value = x
    for layer, weight in enumerate(weights):
        with on(layer):
            value = tf.tanh(tf.matmul(value, weight)) * 0.5 + value
    loss = tf.reduce_sum(value)
    return [loss, tf.add_n([tf.reduce_sum(gradient) for gradient in tf.gradients(loss, weights)])]


def _ops_per_layer() -> float:
    """Ops that one more layer makes."""
    import tensorflow as tf

    def ops(layers: int) -> int:
        with tf.Graph().as_default() as graph:
            weights = [tf.ones((SIZE, SIZE)) for _ in range(layers)]
            before = len(graph.get_operations())
            _layers(tf.ones((SIZE, SIZE)), weights, lambda layer: contextlib.nullcontext())
            return len(graph.get_operations()) - before

    return (ops(12) - ops(4)) / 8


def _values(layers: int) -> list[Any]:
    import tensorflow as tf

    generator = np.random.default_rng(0)
    return [tf.constant((generator.standard_normal((SIZE, SIZE)) / SIZE).astype(np.float32)) for _ in range(layers + 1)]


def _compile_seconds(layers: int) -> float:
    """The first call of a traced function under `jit_compile=True` on the CPU, less a later one."""
    import tensorflow as tf

    values = _values(layers)
    function = tf.function(
        lambda x, *weights: _layers(x, list(weights), lambda layer: contextlib.nullcontext()),
        jit_compile=True,
        autograph=False,
    ).get_concrete_function(*values)
    return _first_seconds(lambda: function(*values))


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
    with contextlib.suppress(tf.errors.OpError):  # what _LoweredOnly arrives as
        _program(values, on)(*values)
        raise AssertionError("The program ran although it was stopped after the lowering.")


def _program(values: list[Any], on: Callable[[int], Any]) -> Any:
    """The traced function."""
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
        fetched = _layers(tf.constant(x.numpy()), constants, lambda layer: contextlib.nullcontext())
        return np.stack(session.run(fetched))


def _first_seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    start = time.perf_counter()
    call()
    return first - (time.perf_counter() - start)
