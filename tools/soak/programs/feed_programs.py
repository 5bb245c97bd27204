"""Random programs with feeds, replicas, shards and collectives, compared with NumPy.

All numbers are small integers, which are exact in float32, so results must be equal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_ipu_shim import ipu
from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops
from tf_ipu_shim.machine.environment import execution_mode

v1 = tf.compat.v1
MODES = ("xla", "kernels")


@dataclasses.dataclass(frozen=True)
class Loop:
    """One loop of a program.

    Args:
        iterations: the number of its iterations, if the dataset does not end.
        factor: the factor of an element.
        inner: elements that an inner loop of an iteration consumes; 0 if the iteration consumes one itself.
        sums: whether elements are summed over the replicas.
    """

    iterations: int
    factor: int
    inner: int
    sums: bool


@dataclasses.dataclass(frozen=True)
class Program:
    """A program: loops that consume one infeed, one after another; the first of them sends.

    Args:
        replicas: the number of replicas.
        shards: IPUs of each.
        loops: the loops in order.
        elements: the elements of the dataset, 0, 1, 2, ...
        runs: the number of its runs.
    """

    replicas: int
    shards: int
    loops: tuple[Loop, ...]
    elements: int
    runs: int

    @classmethod
    def draw(cls, chance: random.Random) -> Program:
        """Returns a random one; about half of the datasets end early."""
        replicas, shards = chance.choice([(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)])
        loops = tuple(
            Loop(
                iterations=chance.randint(1, 9),
                factor=chance.randint(1, 3),
                inner=chance.choice([0, 0, 2]),
                sums=replicas > 1 and chance.random() < 0.4,
            )
            for _ in range(chance.randint(1, 3))
        )
        runs = chance.randint(1, 3)
        wanted = runs * replicas * sum(loop.iterations * max(1, loop.inner) for loop in loops)
        return cls(replicas, shards, loops, chance.choice([wanted + 3, chance.randint(0, wanted)]), runs)


@dataclasses.dataclass
class Outcome:
    """The outcome of one run.

    Args:
        totals: the totals of each loop, of the first replica; None if the dataset ended.
        sent: the elements that the first loop has sent: a row for each iteration, a column for each replica.
        steps: iterations of the first loop so far.
    """

    totals: list[float] | None
    sent: np.ndarray
    steps: int


class _Ended(Exception):
    """The dataset has."""


class _Counted:
    """A program whose results NumPy computes.

    Args:
        program: the program.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.taken = 0
        self.steps = 0

    def run(self) -> Outcome:
        """Returns the results of the next run."""
        sent: list[np.ndarray] = []
        try:
            totals: list[float] | None = [
                self._loop(loop, sent if not n else None) for n, loop in enumerate(self._loops)
            ]
        except _Ended:
            totals = None
        return Outcome(totals, np.array(sent).reshape(-1, self.program.replicas), self.steps)

    @property
    def _loops(self) -> tuple[Loop, ...]:
        return self.program.loops

    def _loop(self, loop: Loop, sent: list[np.ndarray] | None) -> float:
        total = np.zeros(self.program.replicas)
        for _ in range(loop.iterations):
            for _ in range(max(1, loop.inner)):
                total += loop.factor * self._row(loop.sums)
            if sent is not None:
                self.steps += 1
                sent.append(total.copy())
        return float(total[0])

    def _row(self, sums: bool) -> np.ndarray:
        """Returns the next element of each replica."""
        values = np.arange(self.taken, self.taken + self.program.replicas, dtype=np.float64)
        self.taken += self.program.replicas
        if self.taken > self.program.elements:
            raise _Ended
        return np.full_like(values, values.sum()) if sums else values


def expected(program: Program) -> list[Outcome]:
    """Returns the expected results of each run, up to the one in which the dataset ends."""
    counted, outcomes = _Counted(program), []
    for _ in range(program.runs):
        outcomes.append(counted.run())
        if outcomes[-1].totals is None:
            break
    return outcomes


class _Built:
    """A program in its own graph.

    Args:
        program: the program.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        dataset = tf.data.Dataset.range(program.elements).map(lambda x: tf.cast(x, tf.float32))
        self.infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset)
        self.outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        self.steps = v1.get_variable("steps", initializer=0, use_resource=True)
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            self.results = ipu.ipu_compiler.compile(self._model)
        self.rows = self.outfeed.dequeue()
        self.start = [v1.global_variables_initializer(), self.infeed.initializer]

    def _model(self) -> list[tf.Tensor]:
        return [self._loop(number, loop) for number, loop in enumerate(self.program.loops)]

    def _loop(self, number: int, loop: Loop) -> tf.Tensor:
        def body(total: tf.Tensor, *element: tf.Tensor) -> tuple[object, ...]:
            if loop.inner:
                add = functools.partial(self._add, loop)
                total = ipu.loops.repeat(loop.inner, lambda inner, x: add(inner, x), [total], self.infeed)
            else:
                total = self._add(loop, total, *element)
            if number:
                return (total,)
            with ipu.scopes.ipu_shard(0):
                count = self.steps.assign_add(1)
            return total, self.outfeed.enqueue(total), count.op

        return ipu.loops.repeat(loop.iterations, body, [0.0], None if loop.inner else self.infeed)

    def _add(self, loop: Loop, total: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        if loop.sums:
            x = cross_replica_ops.cross_replica_sum(x)
        with ipu.scopes.ipu_shard(self.program.shards - 1):
            return total + loop.factor * x

    def run(self, session: Any) -> Outcome:
        """Returns the results of the next run."""
        try:
            totals: list[float] | None = [float(total) for total in session.run(self.results)]
        except tf.errors.OutOfRangeError:
            totals = None
        sent = np.asarray(session.run(self.rows), np.float64).reshape(-1, self.program.replicas)
        return Outcome(totals, sent, int(session.run(self.steps)))


@contextlib.contextmanager
def running(mode: str) -> Iterator[None]:
    """Makes programs run in one execution mode.

    Args:
        mode: `xla` or `kernels`.
    """
    before = os.environ.get(execution_mode.ENVIRONMENT_VARIABLE)
    os.environ[execution_mode.ENVIRONMENT_VARIABLE] = mode
    try:
        yield
    finally:
        del os.environ[execution_mode.ENVIRONMENT_VARIABLE]
        if before is not None:
            os.environ[execution_mode.ENVIRONMENT_VARIABLE] = before


def ran(program: Program, mode: str) -> list[Outcome]:
    """Returns the results of each run on simulated IPUs.

    Args:
        program: the program.
        mode: how it runs on the host, `xla` or `kernels`.
    """
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = program.replicas * program.shards
    config.configure_ipu_system()
    with running(mode), tf.Graph().as_default():
        built, outcomes = _Built(program), []
        with v1.Session() as session:
            session.run(built.start)
            for _ in range(program.runs):
                outcomes.append(built.run(session))
                if outcomes[-1].totals is None:
                    break
        return outcomes


def difference(program: Program, mode: str) -> str:
    """Describes the fault of a program, or returns an empty string."""
    wanted, got = expected(program), ran(program, mode)
    for number, (one, other) in enumerate(zip(wanted, got)):
        same = one.totals == other.totals and one.steps == other.steps and np.array_equal(one.sent, other.sent)
        if not same:
            return f"{program}\nby {mode}, run {number}: wanted {one}\ngot {other}"
    return "" if len(wanted) == len(got) else f"{program}\nby {mode}: {len(got)} runs, not {len(wanted)}"
