"""Runs one program eagerly on the CPU and compiled for an IPU in each execution mode, and compares the results.

Elements are small multiples of powers of two and no sum is long, so results are compared to the bit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import control_flow_v2_toggles

from soak.programs.feed_programs import running
from tf_ipu_shim import ipu

v1 = tf.compat.v1
MODES = ("kernels", "xla", "auto")
FORMS = ("function", "strategy", "session", "session with control flow of V1")
CPU, IPU = "/device:CPU:0", "/device:IPU:0"


class Order:
    """Reads and writes of variables in the order of the script: by control dependencies where a graph has no other.

    Args:
        explicit: whether control dependencies are needed, as in graphs of TensorFlow 1.
    """

    def __init__(self, explicit: bool) -> None:
        self._explicit = explicit
        self._last: list[Any] = []

    @contextlib.contextmanager
    def after_the_last(self) -> Iterator[None]:
        """Ops built inside run after the last write or read."""
        with tf.control_dependencies(self._last) if self._explicit else contextlib.nullcontext():
            yield

    def read(self, variable: Any) -> Any:
        """Returns a variable's value at this point."""
        with self.after_the_last():
            value = variable.read_value()
        return self.done(value)

    def write(self, assign: Callable[[], Any]) -> None:
        """Does an assignment at this point."""
        with self.after_the_last():
            self.done(assign())

    def done(self, made: Any) -> Any:
        """Later ops run after this tensor or op."""
        if self._explicit:
            self._last = [getattr(made, "op", made)]
        return made

    def inner(self) -> Order:
        """Returns the order in its own body."""
        return Order(self._explicit)

    def loop(self, times: int, body: Callable[[Order, Any, Any], Any], carried: Any) -> Any:
        """Returns a loop whose body receives its own order, the iteration and the carried values, and returns these."""

        def step(index: Any, value: Any) -> tuple[Any, Any]:
            inner = self.inner()
            with tf.control_dependencies([value] if self._explicit else []):
                made = body(inner, index, value)
            with inner.after_the_last():
                return index + 1, tf.identity(made)

        with self.after_the_last():
            _, made = tf.while_loop(lambda index, _: index < times, step, (tf.constant(0), carried))
        return self.done(made)

    def cond(self, predicate: Any, branches: Sequence[Callable[[Order], Any]]) -> Any:
        """One of two branches, each of which receives its own order."""

        def built(branch: Callable[[Order], Any]) -> Callable[[], Any]:
            def build() -> Any:
                inner = self.inner()
                made = branch(inner)
                with inner.after_the_last():
                    return tf.identity(made)

            return build

        with self.after_the_last():
            return self.done(tf.cond(predicate, *map(built, branches)))


class Program(Protocol):
    """A random program."""

    @property
    def starts(self) -> dict[str, np.ndarray]:
        """First values of its variables, by name."""

    @property
    def inputs(self) -> list[np.ndarray]:
        """Its arguments."""

    @property
    def runs(self) -> int:
        """Returns how often it is called."""

    def build(self, order: Order, variables: dict[str, Any], inputs: Sequence[Any]) -> list[Any]:
        """Builds it in the current graph, or runs it eagerly; its results."""


@dataclasses.dataclass
class Outcome:
    """Results of each run, then values of variables; or the exception."""

    values: list[list[np.ndarray]] = dataclasses.field(default_factory=list)
    error: Exception | None = None

    def text(self) -> str:
        """For a report."""
        if self.error is None:
            return str([[value.tolist() for value in values] for values in self.values])[:600]
        lines = [line for line in str(self.error).splitlines() if line.strip() and not line.startswith("  File")]
        return f"{type(self.error).__name__}: {' '.join(lines)[:500]}"


def eagerly(program: Program) -> Outcome:
    """Runs a program op by op on the CPU."""

    def run() -> list[list[np.ndarray]]:
        with tf.device(CPU):
            variables = {name: tf.Variable(value) for name, value in program.starts.items()}
            ran = []
            for _ in range(program.runs):
                made = program.build(Order(False), variables, [tf.constant(one) for one in program.inputs])
                ran.append([one.numpy() for one in made])
            return [*ran, [variable.numpy() for variable in variables.values()]]

    return outcome(run)


def compiled(program: Program, form: str, mode: str) -> Outcome:
    """Runs a program on an IPU.

    Args:
        program: the program.
        form: one of `FORMS`.
        mode: one of `MODES`.
    """
    run = _in_session if form.startswith("session") else _in_function
    with running(mode):
        return outcome(lambda: run(program, form))


def _in_function(program: Program, form: str) -> list[list[np.ndarray]]:
    with tf.device(IPU):
        variables = {name: tf.Variable(value) for name, value in program.starts.items()}

    def build(*inputs: Any) -> list[Any]:
        return program.build(Order(False), variables, inputs)

    def within(*inputs: Any) -> list[Any]:
        with ipu.scopes.ipu_scope(IPU):
            return ipu.ipu_compiler.compile(build, list(inputs))

    strategy = ipu.ipu_strategy.IPUStrategy() if form == "strategy" else None
    function = tf.function(build if strategy else within, autograph=False, jit_compile=bool(strategy) or None)
    ran = []
    for _ in range(program.runs):
        inputs = [tf.constant(one) for one in program.inputs]
        made = strategy.run(function, inputs) if strategy else function(*inputs)
        ran.append([one.numpy() for one in made])
    return [*ran, [variable.numpy() for variable in variables.values()]]


def _in_session(program: Program, form: str) -> list[list[np.ndarray]]:
    with _control_flow_of_v1(form != "session"), tf.Graph().as_default():
        variables = {
            name: v1.get_variable(name, initializer=value, use_resource=True) for name, value in program.starts.items()
        }
        fed = [v1.placeholder(one.dtype, one.shape) for one in program.inputs]

        def build(*inputs: Any) -> list[Any]:
            order = Order(True)
            made = program.build(order, variables, inputs)
            with order.after_the_last():
                return [tf.identity(one) for one in made]

        with ipu.scopes.ipu_scope(IPU):
            results = ipu.ipu_compiler.compile(build, fed)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            ran = [session.run(results, dict(zip(fed, program.inputs))) for _ in range(program.runs)]
            return [*ran, session.run(list(variables.values()))]


@contextlib.contextmanager
def _control_flow_of_v1(wanted: bool) -> Iterator[None]:
    before = control_flow_v2_toggles.control_flow_v2_enabled()
    if wanted:
        control_flow_v2_toggles.disable_control_flow_v2()
    try:
        yield
    finally:
        if before:
            control_flow_v2_toggles.enable_control_flow_v2()


def outcome(run: Callable[[], list[list[np.ndarray]]]) -> Outcome:
    """Returns the outcome of a run."""
    try:
        return Outcome(run())
    except Exception as error:  # all that a script would see is what is compared
        return Outcome(error=error)


@dataclasses.dataclass(frozen=True)
class Finding:
    """The verdict of a comparison: `same`, `refused` (in all modes), `different` or one of ops; and its details."""

    status: str
    detail: str = ""


def compare(program: Program, form: str, tolerance: float = 0.0, reference: Program | None = None) -> Finding:
    """Runs a program in all execution modes; all must return the CPU's result, or refuse the program in the same way.

    Args:
        program: the program.
        form: one of `FORMS`.
        tolerance: relative, for sums that float32 has to round.
        reference: the program with stock TensorFlow's ops, where it has others.
    """
    wanted = eagerly(reference or program)
    found = {mode: compiled(program, form, mode) for mode in MODES}
    if wanted.error is None and are_refused(found):
        return Finding("refused", found["kernels"].text())
    wrong = [f"{mode}: {one.text()}" for mode, one in found.items() if not same(one, wanted, tolerance)]
    if not wrong:
        return Finding("same")
    return Finding("different", "\n".join([f"{form}, {program}", f"wanted: {wanted.text()}", *wrong]))


def are_refused(found: Mapping[str, Outcome]) -> bool:
    """Returns whether all execution modes refuse with one class of error, in words that help a script's author."""
    errors = [one.error for one in found.values()]
    return all(errors) and len(set(map(type, errors))) == 1 and not any(_INTERNAL.search(str(one)) for one in errors)


_INTERNAL = re.compile("TF_DUMP_GRAPH_PREFIX|dummy_file_name")  # a compiler's own words, without the script's line


def same(one: Outcome, other: Outcome, tolerance: float = 0.0) -> bool:
    """Returns whether two outcomes are equal to a relative tolerance, NaN included, or errors of one class."""
    if one.error is not None or other.error is not None:
        return type(one.error) is type(other.error)
    ours, theirs = sum(one.values, []), sum(other.values, [])
    return len(ours) == len(theirs) and all(_equal(*pair, tolerance) for pair in zip(ours, theirs))


def _equal(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=one.dtype.kind == "f")
