"""Random functions of variables whose accesses nothing orders, against `tf.xla.experimental.compile`.

Reads and writes are at the top of a session's compiled function, or in conds, loops and called `tf.function`s up to
two deep. No result needs some of the writes.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from soak.programs.feed_programs import MODES, running
from tf_ipu_shim import ipu

v1 = tf.compat.v1
FORMS = (("top", 2), ("cond", 1), ("cond", 2), ("loop", 1), ("loop", 2), ("call", 2), ("mixed", 1), ("mixed", 2))
"""Places of accesses, and the version of control flow; conds of TensorFlow 1: docs/contributing/compiler.md."""
_MIXED = ("cond", "loop", "call")
_MODES = (*MODES, "auto")


class Function:
    """A random function of two variables; it is the same each time it is built.

    Args:
        kind: where some accesses are: `cond`, `loop`, `call`, `mixed` for all of these, or `top` for none.
        seed: the seed of its structure.
    """

    def __init__(self, kind: str, seed: int) -> None:
        self._kind, self._seed = kind, seed

    def __call__(self, x: Any) -> list[Any]:
        """Builds it; returns what it reads and updates."""
        self._chance = random.Random(self._seed)
        names = self._chance.sample(["b", "Read", "x1", "AssignM"], 2)
        self._weights = [v1.get_variable(name, initializer=1.0 + i, use_resource=True) for i, name in enumerate(names)]
        results: list[Any] = []
        updates: list[Any] = []
        for step in range(self._chance.randint(2, 5)):
            with tf.name_scope(self._chance.choice(["", "l", "M", "zz"])):
                if self._kind != "top" and self._chance.random() < 0.4:
                    results.append(self._nested(1, x))
                else:
                    self._access(step, x, results, updates)
        return [*(results or self._weights), *updates]

    def _access(self, step: int, x: Any, results: list[Any], updates: list[Any]) -> None:
        """Reads or writes a variable; most writes are returned, and no result needs the others."""
        weight = self._chance.choice(self._weights)
        kind = self._chance.choice(["read", "use", "train", "add", "assign", "scale"])
        if kind in ("read", "use"):
            results.append(weight.read_value() if kind == "read" else tf.reduce_sum(x * weight))
            return
        if kind == "train":
            loss = tf.reduce_sum(x * weight)
            update = v1.train.GradientDescentOptimizer(0.001).minimize(loss, var_list=[weight])
        else:
            update = _written(kind, weight, step)
        if self._chance.random() < 0.7:
            updates.append(update)

    def _nested(self, depth: int, x: Any) -> Any:
        steps = self._chance.randint(1, 4)
        kind = self._chance.choice(_MIXED) if self._kind == "mixed" else self._kind
        if kind == "call":
            return tf.function(lambda y: self._body(depth, y, steps), autograph=False)(x)
        if kind == "cond":
            is_taken = tf.reduce_sum(x) > self._chance.choice([0.0, 1e6])
            return tf.cond(is_taken, lambda: self._body(depth, x, steps), lambda: self._body(depth, x, steps))
        return tf.while_loop(
            lambda i, y: i < 2,
            lambda i, y: (i + 1, y * 0.5 + self._body(depth, x, steps)),
            (0, 0.0),
            maximum_iterations=3,
        )[1]

    def _body(self, depth: int, x: Any, steps: int) -> Any:
        results, updates = [tf.reduce_sum(x)], []
        for step in range(steps):
            with tf.name_scope(self._chance.choice(["k", "l", "M", "zz"])):
                weight = self._chance.choice(self._weights)
                kind = self._chance.choice(
                    ["read", "use", "add", "assign", "scale", *(["nested"] if depth < 2 else [])]
                )
                if kind == "nested":
                    results.append(self._nested(depth + 1, x))
                elif kind in ("read", "use"):
                    results.append(weight.read_value() + 0.0 if kind == "read" else tf.reduce_sum(x * weight))
                else:
                    updates.append(_written(kind, weight, step))
        with tf.control_dependencies(updates if self._chance.random() < 0.5 else []):
            return tf.add_n(results)


def _written(kind: str, weight: Any, step: int) -> Any:
    value = {"add": 0.5, "assign": 3.25 + step, "scale": weight * 0.5}[kind]
    return (weight.assign_add if kind == "add" else weight.assign)(value).op


def optimizes(kind: str, version: int) -> bool:
    """Returns whether stock's order is that of a session that optimizes graphs; for nested conds it is not."""
    return version == 2 or kind not in ("cond", "mixed")


def on_ipu(function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Compiles a function for an IPU, as `tf.xla.experimental.compile` does for the host."""
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(function, inputs)


def ran(compile: Callable[..., Any], function: Callable[..., Any], optimizes: bool = True) -> list[np.ndarray]:
    """Returns the results of two runs of a compiled function, then the variables.

    Args:
        compile: makes ops of the function.
        function: a function of a vector with three elements.
        optimizes: whether TensorFlow's session optimizes the graph.
    """
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = not optimizes
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        x = v1.placeholder(tf.float32, [3])
        results = compile(function, [x])
        session.run(v1.global_variables_initializer())
        runs = [session.run(results, {x: np.full(3, value)}) for value in (1.0, 0.5)]
        return [value for run in (*runs, session.run(v1.global_variables())) for value in run if value is not None]


def difference(function: Callable[..., Any], modes: Sequence[str] = _MODES, optimizes: bool = True) -> str:
    """Describes how a function differs from stock's; empty if it does not.

    Args:
        function: a function of a vector with three elements.
        modes: execution modes, how it runs on the host.
        optimizes: whether stock TensorFlow's session optimizes the graph.
    """
    wanted = ran(tf.xla.experimental.compile, function, optimizes)
    wrong = []
    for mode in modes:
        with running(mode):
            got = ran(on_ipu, function)
        if len(got) != len(wanted) or not all(map(_same, got, wanted)):
            wrong.append(f"{mode}: {[*map(float, got)]}, not {[*map(float, wanted)]}")
    return "; ".join(wrong)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return np.allclose(one, other, rtol=1e-5)


@contextlib.contextmanager
def control_flow(version: int) -> Iterator[None]:
    """Makes graphs that are built inside use control flow of TensorFlow 1 or 2."""
    before = control_flow_util.ENABLE_CONTROL_FLOW_V2
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = version == 2
    try:
        yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


def found(first: int, count: int) -> Iterator[str]:
    """Draws a number of functions in all forms; yields the fault of each, or an empty string."""
    ipu.config.IPUConfig().configure_ipu_system()
    for number in range(first, first + count):
        kind, version = FORMS[number % len(FORMS)]
        with control_flow(version):
            text = difference(Function(kind, number), optimizes=optimizes(kind, version))
        yield f"{kind}, control flow {version}, {number}: {text}" if text else ""
