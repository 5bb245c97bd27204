"""Runs one model on simulated IPUs and on TensorFlow's CPU, and compares what comes out.

A model is a function `model(parts, *inputs)` that returns a tensor, or a list of tensors with operations behind them.
It takes from `parts` what differs between the runs: `parts.shard(index)` is `ipu_shard` on the IPUs and nothing on the
CPU, `parts.variable(name, value)` makes a resource variable, or gives the one of that name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.compiler.xla import xla
from tf_ipu_shim.ipu import ipu_compiler, scopes
from tf_ipu_shim.ipu.config import DeviceConnectionType, IPUConfig, reset_ipu_configuration

v1 = tf.compat.v1
CPU = "/device:CPU:0"
IPU = "/device:IPU:0"


def configure(ipus: int | Sequence[int] = 1) -> None:
    """Configures TensorFlow devices with so many IPUs each."""
    config = IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()


def configure_for_plans(ipus: int, recompute: bool = False, remote_buffers: bool = False) -> None:
    """One device, for which programs are lowered, and so planned, but neither compiled by XLA nor run."""
    reset_ipu_configuration()
    config = IPUConfig()
    config.auto_select_ipus = ipus
    config.allow_recompute = recompute
    config.device_connection.type = DeviceConnectionType.PRE_COMPILE
    config.device_connection.version = "ipu2"
    config.device_connection.enable_remote_buffers = remote_buffers
    config.configure_ipu_system()


class Parts:
    """What a model is made of that differs between the runs.

    Args:
        device: where variables are made.
        marked: whether `shard` marks ops.
    """

    def __init__(self, device: str, marked: bool) -> None:
        self.device = device
        self.marked = marked
        self.variables: dict[str, Any] = {}
        self.start: dict[str, np.ndarray] = {}

    def shard(self, index: int | None) -> contextlib.AbstractContextManager[None]:
        """Marks what is made inside for an IPU; for None, marks nothing."""
        if self.marked and index is not None:
            return scopes.ipu_shard(index)
        return contextlib.nullcontext()

    def variable(self, name: str, value: Any) -> Any:
        """The variable of that name, which begins with a value."""
        if name not in self.variables:
            self.start[name] = np.asarray(value, np.float32)
            self.variables[name] = self._new_variable(name, self.start[name])
        return self.variables[name]

    def _new_variable(self, name: str, value: np.ndarray) -> Any:
        return v1.get_variable(name, initializer=v1.constant_initializer(value), shape=value.shape, use_resource=True)


class EagerParts(Parts):
    """The same for TensorFlow 2, where variables live outside the functions that use them."""

    def _new_variable(self, name: str, value: np.ndarray) -> Any:
        with tf.init_scope(), tf.device(self.device):
            return tf.Variable(value, name=name)


@dataclasses.dataclass
class Run:
    """What a model gave.

    Args:
        steps: for each step its results, in order.
        variables: values after the last step by name, those that optimizers made included.
        start: values before the first one.
    """

    steps: list[list[np.ndarray]]
    variables: dict[str, np.ndarray]
    start: dict[str, np.ndarray]


Model = Callable[..., Any]


def _as_list(returned: Any) -> list[Any]:
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]


def _fetched(returned: Any) -> tuple[list[Any], list[Any]]:
    values = _as_list(returned)
    operations = [value for value in values if isinstance(value, tf.Operation)]
    return [value for value in values if not isinstance(value, tf.Operation)], operations


def _as_written() -> Any:
    """TensorFlow's graph rewriting drops assignments on which only unused arguments of functions depend."""
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


@contextlib.contextmanager
def rewriting_off(wanted: bool) -> Any:
    """The same for functions: the CPU runs them as they are written."""
    if not wanted:
        yield
        return
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


def _writes(variables: Iterable[Any]) -> list[tf.Operation]:
    """A program of an IPU leaves out no write, and a session all that nothing fetched needs."""
    initial = {variable.initializer for variable in variables}
    found = v1.get_default_graph().get_operations()
    return [op for op in found if op.type.startswith("Assign") and op not in initial]


def run_session(
    model: Model, inputs: Sequence[Any], steps: int = 1, on_ipu: bool = False, stock_xla: bool = False
) -> Run:
    """Builds a TensorFlow 1 graph of a model and runs it in a session.

    Args:
        model: the model.
        inputs: its inputs.
        steps: how often it runs.
        on_ipu: compiled for the IPU; else it runs op by op on the CPU.
        stock_xla: compiled by stock TensorFlow for the CPU instead.
    """
    parts = Parts(IPU if on_ipu else CPU, on_ipu)
    with tf.Graph().as_default():
        with tf.device(CPU):
            fed = [v1.placeholder(value.dtype, value.shape) for value in map(np.asarray, inputs)]
        if on_ipu:
            with scopes.ipu_scope(IPU):
                built = ipu_compiler.compile(lambda *arguments: model(parts, *arguments), fed)
        elif stock_xla:
            with tf.device(CPU):
                built = xla.compile(lambda *arguments: model(parts, *arguments), fed)
        else:
            with tf.device(CPU):
                built = model(parts, *fed)
        tensors, operations = _fetched(built)
        variables = {variable.op.name: variable for variable in v1.global_variables()}
        is_compiled = on_ipu or stock_xla
        if not is_compiled:
            operations += _writes(variables.values())
        with v1.Session(config=None if is_compiled else _as_written()) as session:
            session.run(v1.global_variables_initializer())
            start = session.run(variables)
            feed = dict(zip(fed, inputs))
            ran = [session.run((tensors, operations), feed)[0] for _ in range(steps)]
            return Run(ran, session.run(variables), start)


def run_function(model: Model, inputs: Sequence[Any], steps: int = 1, mode: str = "cpu") -> Run:
    """Runs a model in a `tf.function`.

    Args:
        model: the model.
        inputs: its inputs.
        steps: how often it runs.
        mode: `"cpu"`, `"stock jit"` for `jit_compile=True` on the CPU, `"compile"` for `ipu_compiler.compile` in the
            function, or `"jit"` for `jit_compile=True` called on the IPU.
    """
    on_cpu, jits = mode in ("cpu", "stock jit"), mode in ("jit", "stock jit")
    parts = EagerParts(CPU if on_cpu else IPU, not on_cpu)

    def call(*arguments: Any) -> Any:
        return _fetched(model(parts, *arguments))[0]

    def compiled(*arguments: Any) -> Any:
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(call, list(arguments))

    function = tf.function(compiled if mode == "compile" else call, autograph=False, jit_compile=jits or None)
    with rewriting_off(on_cpu), tf.device(CPU if on_cpu else IPU if jits else None):
        ran = [[value.numpy() for value in function(*map(tf.constant, inputs))] for _ in range(steps)]
    return Run(ran, {name: variable.numpy() for name, variable in parts.variables.items()}, parts.start)


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-4, what: str = "", span: Any = None) -> None:
    """Fails unless an array is what it should be, to a fraction of the largest entry that it should have.

    An absolute tolerance would let small gradients pass that are wrong by their own size.

    Args:
        actual: what came out.
        expected: what should have come out; infinities and NaNs at the same places.
        tolerance: the fraction. Whole numbers, booleans and text must be the same.
        what: said in the message.
        span: what the fraction is taken of, if not `expected`: how far a variable moved. Then what a float32 of the
            variable's own size cannot tell apart is the same, too.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, what
    if expected.dtype.kind in "biuSUO":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    allowed = tolerance * _largest(expected if span is None else span)
    if span is not None:
        allowed += 4 * np.finfo(np.float32).eps * _largest(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=allowed, err_msg=what)


def _largest(values: Any) -> float:
    values = np.abs(np.asarray(values, np.float64))
    return float(np.max(values, where=np.isfinite(values), initial=0.0))


def assert_same(actual: Run, expected: Run, tolerance: float = 1e-4) -> None:
    """Fails unless two runs gave the same results, and moved variables in the same way; see `assert_close`."""
    assert len(actual.steps) == len(expected.steps)
    for step, (ours, theirs) in enumerate(zip(actual.steps, expected.steps)):
        assert len(ours) == len(theirs)
        for index, (one, other) in enumerate(zip(ours, theirs)):
            assert one.dtype == other.dtype
            assert_close(one, other, tolerance, f"result {index} of step {step}")
    assert sorted(actual.variables) == sorted(expected.variables)
    for name, value in expected.variables.items():
        moved = value - expected.start[name]
        assert_close(actual.variables[name], value, tolerance, f"variable {name}", span=moved)


def check_session(model: Model, inputs: Sequence[Any], steps: int = 1) -> Run:
    """Checks that a model compiled for the IPU in a TensorFlow 1 graph does what the same graph does on the CPU.

    XLA orders sums otherwise than ops in turn: a difference that is 0 op by op can be its rounding of 0, in stock
    TensorFlow too. Where results are not close to those of the ops, they have to be to the bit what stock TensorFlow's
    XLA gives.
    """
    actual = run_session(model, inputs, steps, on_ipu=True)
    try:
        assert_same(actual, run_session(model, inputs, steps))
    except AssertionError:
        if not _equal(actual, run_session(model, inputs, steps, stock_xla=True)):
            raise
    return actual


def check_function(model: Model, inputs: Sequence[Any], steps: int = 1, mode: str = "compile") -> Run:
    """The same in a `tf.function`; see `run_function`. Stock TensorFlow's XLA is `jit_compile=True` there."""
    actual, op_by_op = run_function(model, inputs, steps, mode), run_function(model, inputs, steps)
    try:
        assert_same(actual, op_by_op)
    except AssertionError:
        if not _equal(actual, run_function(model, inputs, steps, "stock jit")):
            raise
    return actual


def _equal(one: Run, other: Run) -> bool:
    """Whether two runs gave the same, to the bit."""
    ours, theirs = map(_arrays, (one, other))
    return len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))


def _arrays(run: Run) -> list[np.ndarray]:
    return [*itertools.chain(*run.steps), *(run.variables[name] for name in sorted(run.variables))]
