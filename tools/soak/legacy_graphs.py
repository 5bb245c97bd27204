"""Random graphs of TensorFlow 1 with control flow, gradients and side effects, against `tf.xla.experimental.compile`.

They need their own process if V2 behaviour is off: `python -m soak.legacy_graphs FIRST COUNT off xla`. Effects
only add to variables that nothing reads, so any order of them gives equal results.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

_WEIGHTS = ("u", "v", "w")
_BRANCHES = ("cond", "case", "switch_case")
_EFFECTS = ("plain", "waited_for", "unused_cond", "unused_group", "unused_switch_case", "unused_loop", "unused_call")
_AT_ONCE = 20
_OPERATORS = ("multiply", "power", "sine", "add")


@contextlib.contextmanager
def control_flow(is_v2: bool) -> Iterator[None]:
    """Makes loops and branches of the block those of TensorFlow 1 or 2."""
    import tensorflow.compat.v1 as v1

    was_v2 = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if is_v2 else v1.disable_control_flow_v2)()
    try:
        yield
    finally:
        (v1.enable_control_flow_v2 if was_v2 else v1.disable_control_flow_v2)()


def stock_repeat(times: int, step: Callable[[Any], Any], value: Any, use_while_v1: bool) -> Any:
    """Works like `ipu.loops.repeat`, by a loop of TensorFlow 1 or 2; control flow in its body is as around it."""
    import tensorflow.compat.v1 as v1

    is_v2 = v1.control_flow_v2_enabled()

    def body(i: Any, y: Any) -> tuple[Any, Any]:
        with control_flow(is_v2):
            return i + 1, step(y)

    with control_flow(not use_while_v1):
        return v1.while_loop(lambda i, _: i < times, body, (0, value), maximum_iterations=times)[1]


Repeat = Callable[[int, Callable[[Any], Any], Any, bool], Any]


class Net:
    """A random function of a boolean and a vector with three elements; each build returns the same one.

    Args:
        seed: the seed of its structure.
        variables: returns the variable of a name.
        repeat: repeats a function of a value; `tf.while_loop` if it is None.
    """

    def __init__(self, seed: int, variables: Callable[[str], Any], repeat: Repeat | None = None) -> None:
        import tensorflow as tf

        self._repeat = repeat
        self._tf, self._variables, self._random = tf, variables, random.Random(seed)
        self._sites = 0
        self._has_gradients = self._random.random() < 0.6

    def __call__(self, flag: Any, x: Any) -> list[Any]:
        """Builds the net; returns its value and, for two of three nets, gradients."""
        value = x
        for _ in range(self._random.randint(1, 3)):
            value = self._step(value, flag, 2)
        if not self._has_gradients:
            return [value]
        weights = [self._variables(name) for name in _WEIGHTS]
        gradients = self._tf.compat.v1.gradients(self._tf.reduce_sum(value), [x, *weights])
        return [value, *(self._tf.convert_to_tensor(one) for one in gradients if one is not None)]

    def _step(self, value: Any, flag: Any, depth: int) -> Any:
        kinds = [*_OPERATORS, "effect", "effect"]
        if depth:
            kinds += [*_BRANCHES, "loop", "loop", "repeat", *([] if self._has_gradients else ["call"])]
        kind = self._random.choice(kinds)
        if kind == "effect":
            return self._effect(self._random.choice(_EFFECTS), value, flag)
        if kind in _OPERATORS:
            return self._operator(kind, value)
        if kind in ("loop", "repeat"):
            loop = self._loop if kind == "loop" else self._repeated
            return loop(value, lambda y: self._body(y, flag, depth - 1))
        if kind == "call":
            return self._tf.function(lambda y: self._body(y, flag, depth - 1), autograph=False)(value)
        branches = [lambda: self._body(value, flag, depth - 1) for _ in range(2)]
        return self._branches(kind, value, flag, branches)

    def _body(self, value: Any, flag: Any, depth: int) -> Any:
        for _ in range(self._random.randint(1, 2)):
            value = self._step(value, flag, depth)
        return self._tf.identity(value)

    def _operator(self, kind: str, value: Any) -> Any:
        w, u = (self._variables(self._random.choice(_WEIGHTS)) for _ in range(2))
        if kind == "multiply":
            return value * w
        if kind == "power":
            return self._tf.tanh(value * w) * u
        return self._tf.sin(value) if kind == "sine" else self._tf.tanh(value + w * 0.5)

    def _predicate(self, value: Any, flag: Any) -> Any:
        if self._random.random() < 0.5:
            return flag
        return self._tf.reduce_sum(value) > self._random.choice([-0.51, 0.0123, 0.51])

    def _branches(self, kind: str, value: Any, flag: Any, branches: Sequence[Callable[[], Any]]) -> Any:
        predicate = self._predicate(value, flag)
        if kind == "cond":
            return self._tf.cond(predicate, *branches)
        if kind == "case":
            other = self._predicate(value, flag)
            return self._tf.case([(predicate, branches[0]), (other, lambda: value * 0.5)], default=branches[1])
        return self._tf.switch_case(self._tf.cast(predicate, self._tf.int32), list(branches))

    def _loop(self, value: Any, step: Callable[[Any], Any]) -> Any:
        times = self._random.randint(1, 3)
        return self._tf.compat.v1.while_loop(
            lambda i, _: i < times, lambda i, y: (i + 1, step(y)), (0, value), maximum_iterations=times
        )[1]

    def _repeated(self, value: Any, step: Callable[[Any], Any]) -> Any:
        times, use_while_v1 = self._random.randint(1, 3), self._random.random() < 0.5
        if self._repeat is not None:
            return self._repeat(times, step, value, use_while_v1)
        return stock_repeat(times, step, value, use_while_v1)

    def _hit(self, value: Any) -> Any:
        self._sites += 1
        with self._tf.name_scope(""):
            return self._variables(f"site_{self._sites}").assign_add(self._tf.stop_gradient(value) * 0.5 + 1.0)

    def _effect(self, kind: str, value: Any, flag: Any) -> Any:
        tf, hit = self._tf, self._hit
        if kind == "plain":
            hit(value)
        elif kind == "waited_for":
            return self._after(hit(value), value)
        elif kind == "unused_cond":
            tf.cond(self._predicate(value, flag), lambda: hit(value), lambda: hit(-value))
        elif kind == "unused_group":
            tf.cond(self._predicate(value, flag), lambda: tf.group(hit(value)), tf.no_op)
        elif kind == "unused_switch_case":
            tf.switch_case(tf.cast(flag, tf.int32), [lambda: value * 2.0, lambda: self._beside(value)])
        elif kind == "unused_loop":
            self._loop(value, lambda y: self._after(hit(y), y))
        else:
            tf.function(self._beside, autograph=False)(value)
        return value

    def _beside(self, value: Any) -> Any:
        self._hit(value)
        return value * 2.0

    def _after(self, update: Any, value: Any) -> Any:
        with self._tf.control_dependencies([update]):
            return self._tf.identity(value)


def _ran(seed: int, where: str) -> dict[str, Any]:
    """Values by name after two runs of a net, those of variables too.

    Args:
        seed: the seed of the net.
        where: on an `ipu`, by stock `xla`, in a stock `session`, or in a stock `function`, which does each effect once.
    """
    import tensorflow as tf

    from tf_ipu_shim import ipu

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        flag, x = v1.placeholder(tf.bool, []), v1.placeholder(tf.float32, [3])

        def variable(name: str) -> Any:
            start = v1.constant_initializer(0.0 if "_" in name else 0.3 + 0.4 * _WEIGHTS.index(name))
            with tf.init_scope(), v1.variable_scope("net", reuse=v1.AUTO_REUSE, use_resource=True):
                return v1.get_variable(name, [3], initializer=start, trainable="_" not in name)

        def repeat(times: int, step: Callable[[Any], Any], value: Any, use_while_v1: bool) -> Any:
            return ipu.loops.repeat(times, step, [value], use_while_v1=use_while_v1)

        def model(flag: Any, x: Any) -> list[Any]:
            return Net(seed, variable, repeat if where == "ipu" else None)(flag, x)

        if where == "ipu":
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                results = ipu.ipu_compiler.compile(model, [flag, x])
        elif where == "function":
            results = tf.function(model, autograph=False)(flag, x)
        else:
            results = tf.xla.experimental.compile(model, [flag, x]) if where == "xla" else model(flag, x)
        session.run(v1.global_variables_initializer())
        values = {}
        for run, (chosen, sign) in enumerate([(True, 1.0), (False, -1.0)]):
            for number, value in enumerate(
                session.run(results, {flag: chosen, x: np.array([0.5, -0.2, 0.3], np.float32) * sign})
            ):
                values[f"result {number} of run {run}"] = value
        return values | {one.op.name: session.run(one) for one in v1.global_variables()}


def difference(seed: int, oracle: str = "xla") -> str:
    """Describes the fault of a net, or returns an empty string. The process decides whether V2 behaviour is on."""
    import tensorflow as tf

    try:
        wanted = _ran(seed, oracle)
    except Exception:  # XLA cannot compile all gradients of loops
        try:
            wanted = _ran(seed, oracle := "session")
        except tf.errors.InvalidArgumentError:  # nor a session those of a loop of TensorFlow 2 in one of TensorFlow 1
            return ""
    if oracle == "session":  # which leaves out some side effects
        wanted = {name: value for name, value in wanted.items() if name.startswith("result ")}
    try:
        got = _ran(seed, "ipu")
    except Exception as error:
        return f"net {seed}: {error}"
    other = {name: value for name, value in wanted.items() if not _same(got.get(name), value)}
    if other and oracle == "xla":
        other = _without_repeated(seed, other, got)
    texts = [f"{name}: {got.get(name)}, not {value}" for name, value in other.items()]
    return f"net {seed}: {'; '.join(texts)}" if texts else ""


def _without_repeated(seed: int, other: dict[str, Any], got: dict[str, Any]) -> dict[str, Any]:
    """Leaves out the values of effects that only stock XLA has repeated."""
    session, function = (_ran(seed, stock) for stock in ("session", "function"))
    return {
        name: value
        for name, value in other.items()
        if not is_repeated(value, got.get(name), session[name], function[name])
    }


def is_repeated(compiled: Any, got: Any, in_session: Any, in_function: Any) -> bool:
    """Returns whether stock XLA has done an effect several times that ours, and stock without XLA, do once.

    XLA makes an `If` of each V1 merge. Of conds in conds and in cases it may make several Ifs, each with a copy of the
    branch.

    Args:
        compiled: a variable's value by stock XLA.
        got: ours.
        in_session: its value in a stock session, which leaves out effects that no result needs.
        in_function: its value in a stock function, which does each effect once.
    """
    is_once = _same(got, in_function) and (_same(got, in_session) or not np.any(in_session))
    return is_once and bool(np.any(got)) and any(_same(times * got, compiled) for times in (2, 3, 4))


def _same(one: Any, other: Any) -> bool:
    return one is not None and np.allclose(one, other, rtol=1e-4, atol=1e-5)


def found(first: int, count: int) -> Iterator[str]:
    """Checks nets in separate processes, with V2 behaviour off and on.

    Yields:
        The fault of each net; empty if it has none.
    """
    for behaviour in ("off", "on"):
        start, end = first, first + count
        while start < end:
            before = start
            for line in _lines(start, min(_AT_ONCE, end - start), behaviour, "xla"):
                start += 1
                yield f"V2 behaviour {behaviour}, {line}" if line else ""
            if start == before:  # stock XLA ends the process with some graphs of loops and branches
                start += 1
                ended = f"net {before} ends its process: python -m soak.legacy_graphs {before} 1 {behaviour} session"
                line = next(_lines(before, 1, behaviour, "session"), ended)
                yield f"V2 behaviour {behaviour}, {line}" if line else ""


def _lines(first: int, count: int, behaviour: str, oracle: str) -> Iterator[str]:
    """Yields the fault of each net, when a process has run it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "soak.legacy_graphs", str(first), str(count), behaviour, oracle]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("net:"):
                    yield line.removeprefix("net:").strip()
        finally:
            process.kill()


def _main(first: int, count: int, behaviour: str, oracle: str) -> None:
    import tensorflow as tf

    from tf_ipu_shim import ipu

    if behaviour == "off":
        tf.compat.v1.disable_v2_behavior()
    ipu.config.IPUConfig().configure_ipu_system()
    for seed in range(first, first + count):
        print("net:", difference(seed, oracle).replace("\n", " "), flush=True)


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
