"""Random programs that draw random numbers: for one seed all execution modes draw the same, in each run and replica."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from soak.modes import IPU, MODES, Finding, Outcome, are_refused, outcome, same
from soak.programs.feed_programs import running
from tf_ipu_shim import ipu

v1 = tf.compat.v1
_DRAWS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda x: tf.random.uniform([3]),
    "normal": lambda x: tf.random.normal([2, 2]),
    "seeded": lambda x: tf.random.uniform([3], seed=5),
    "truncated": lambda x: tf.random.truncated_normal([3]),
    "integers": lambda x: tf.cast(tf.random.uniform([4], maxval=1000, dtype=tf.int32), tf.float32),
    "categorical": lambda x: tf.cast(tf.random.categorical(tf.zeros([2, 50]), 3), tf.float32),
    "shuffle": lambda x: tf.random.shuffle(x),
    "dropout": lambda x: tf.nn.dropout(x, 0.5),
    "IPU dropout": lambda x: ipu.rand_ops.dropout(x, rate=0.5),
    "stateless": lambda x: tf.random.stateless_uniform([3], [7, 5]),
    "stateless normal": lambda x: tf.random.stateless_normal([3], [7, 5], alg="philox"),
    "seeds": lambda x: tf.random.stateless_normal([2], tf.random.uniform([2], maxval=99, dtype=tf.int32)),
    "bits": lambda x: tf.random.stateless_uniform([3], [7, 5], None, None, tf.int32) // 128,
    "fold": lambda x: tf.random.experimental.stateless_fold_in([7, 5], 3) // 128,
    "gamma-like": lambda x: -tf.math.log(tf.random.uniform([3], 0.5, 1.0)),
}
_ROUNDING = 1e-5  # of functions of random numbers, which XLA computes in another order
_AROUND = ("nothing", "loop", "long loop", "cond", "call", "call in a loop", "gradient")


@dataclasses.dataclass(frozen=True)
class Program:
    """Random numbers, in order.

    Args:
        draws: keys of `_DRAWS`, each with the construct around it, a key of `_AROUND`.
        unused: whether a random number is drawn that no result needs.
        replicas: the replicas that run it.
        identical: whether replicas draw the same.
        seed: the seed of the device.
        runs: how often it is run.
    """

    draws: tuple[tuple[str, str], ...]
    unused: bool
    replicas: int
    identical: bool
    seed: int
    runs: int = 3

    @classmethod
    def draw(cls, chance: random.Random) -> Program:
        """Returns a random one."""
        draws = tuple((chance.choice(list(_DRAWS)), chance.choice(_AROUND)) for _ in range(chance.randint(1, 4)))
        replicas = chance.choice([1, 1, 2, 4])
        identical = replicas > 1 and chance.random() < 0.3
        return cls(draws, chance.random() < 0.3, replicas, identical, chance.randint(0, 2**31))

    def build(self) -> list[Any]:
        """Builds it."""
        if self.unused:
            tf.random.normal([5])
        return [_surrounded(_DRAWS[draw], around) for draw, around in self.draws]


def _surrounded(draw: Callable[[Any], Any], around: str) -> Any:
    x = tf.range(1.0, 9.0)

    def drawn() -> Any:
        return tf.cast(draw(x), tf.float32)

    if around.endswith("loop"):
        called = tf.function(drawn, autograph=False) if around == "call in a loop" else drawn
        times = 40 if around == "long loop" else 3
        start = tf.zeros_like(drawn())
        return tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, y * 0.5 + called()), (0, start))[1]
    if around == "cond":
        return tf.cond(tf.random.uniform([]) > 0.5, drawn, lambda: -drawn())
    if around == "call":
        return tf.function(drawn, autograph=False)()
    if around == "gradient":
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.cast(draw(x), tf.float32) * tf.reduce_sum(x * x))
        return tape.gradient(loss, x)
    return drawn()


def drawn(program: Program, mode: str) -> Outcome:
    """Numbers of each run, for each replica, and of as many runs after the seed was set again.

    Args:
        program: the program.
        mode: the execution mode.
    """
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = program.replicas
    config.configure_ipu_system()

    def run() -> list[list[np.ndarray]]:
        with tf.Graph().as_default(), v1.Session() as session:
            outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
            with ipu.scopes.ipu_scope(IPU):
                built = ipu.ipu_compiler.compile(
                    lambda: ipu.loops.repeat(2, lambda: outfeed.enqueue(program.build()), [])
                )
            rows = outfeed.dequeue()
            ran = []
            for _ in range(2):
                ipu.utils.reset_ipu_seed(program.seed, experimental_identical_replicas=program.identical)
                for _ in range(program.runs):
                    session.run(built)
                    ran.append(session.run(rows))
            return ran

    with running(mode):
        return outcome(run)


def compare(program: Program, form: str = "session") -> Finding:
    """Draws in all execution modes.

    Args:
        program: the program.
        form: see `modes.compare`; programs with feeds and replicas need a session, so there is always one.
    """
    found = {mode: drawn(program, mode) for mode in MODES}
    first = found["kernels"]
    if are_refused(found):
        return Finding("refused", first.text())
    wrong = [f"{mode} draws others: {one.text()}" for mode, one in found.items() if not same(one, first, _ROUNDING)]
    wrong += [f"{mode}: {problem}" for mode, one in found.items() if (problem := _problem(program, one))]
    told = "\n".join([str(program), f"kernels: {first.text()}", *wrong])
    return Finding("different", told) if wrong else Finding("same")


def _problem(program: Program, found: Outcome) -> str:
    """Describes the fault of one mode's random numbers, or returns an empty string."""
    if found.error is not None:
        return found.text()
    first, again = found.values[: program.runs], found.values[program.runs :]
    if not same(Outcome(first), Outcome(again)):
        return "the same seed draws different numbers"
    if program.draws[0][0] == "normal" and np.array_equal(first[0][0], first[1][0]):
        return "two runs draw the same numbers"
    if program.replicas == 1:
        return ""
    own = first[0][0][:, 0], first[0][0][:, 1]
    if program.identical != np.array_equal(*own) and program.draws[0][0] in ("normal", "uniform"):
        return f"replicas draw {own[0].tolist()} and {own[1].tolist()}"
    return ""
