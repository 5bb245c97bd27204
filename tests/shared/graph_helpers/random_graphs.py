"""Random models for `harness`: a description that hypothesis draws, and the graph that is built from it.

All values are matrices. An instruction takes matrices of a pool by number, so every description makes a valid graph;
what it makes goes into the pool. Results are kept small, so that float32 is exact enough to compare.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from harness import Parts
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

v1 = tf.compat.v1
NUM_IPUS = 4
LARGEST = 6  # rows or columns


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One step of a random model.

    Args:
        kind: a key of `_OPS` or `_BODIES`.
        first: number of the first operand in the pool.
        second: number of the second operand.
        number: what the op makes of it: an axis, a slice, a shape, ...
        shards: marks, outermost first; none for unmarked ops.
        bodies: the functions of loops, branches and calls.
    """

    kind: str
    first: int
    second: int
    number: int
    shards: tuple[int, ...] = ()
    bodies: tuple[tuple[Instruction, ...], ...] = ()


@dataclasses.dataclass(frozen=True)
class Description:
    """A random model.

    Args:
        shapes: of the inputs.
        instructions: what it computes.
        training: `"none"`, `"gradients"`, or the name of an optimizer.
        seed: of the inputs' values.
    """

    shapes: tuple[tuple[int, int], ...]
    instructions: tuple[Instruction, ...]
    training: str
    seed: int

    def inputs(self) -> list[np.ndarray]:
        """Values for the inputs."""
        random = np.random.default_rng(self.seed)
        return [random.normal(size=shape).astype(np.float32) for shape in self.shapes]


def _columns(matrix: Any, count: int) -> Any:
    """So many columns of a matrix, repeated where it has fewer."""
    return tf.gather(matrix, [index % matrix.shape[1] for index in range(count)], axis=1)


def _rows(matrix: Any, count: int) -> Any:
    return tf.gather(matrix, [index % matrix.shape[0] for index in range(count)])


def _like(matrix: Any, other: Any) -> Any:
    """A matrix that can be broadcast to the shape of another: itself, its mean row, column or number."""
    for axis, (own, wanted) in enumerate(zip(matrix.shape, other.shape)):
        if own not in (1, wanted):
            matrix = tf.reduce_mean(matrix, axis=axis, keepdims=True)
    return matrix


def _matmul(a: Any, b: Any, number: int) -> Any:
    b = _rows(b, a.shape[1])
    product = tf.matmul(a, tf.transpose(b), transpose_b=True) if number % 2 else tf.matmul(a, b)
    return product / float(a.shape[1])


def _convolution(a: Any, b: Any, number: int) -> Any:
    image = tf.reshape(a, [1, *a.shape, 1])
    kernel = tf.reshape(_columns(_rows(b, 2), 2), [2, 2, 1, 1])
    made = tf.nn.conv2d(image, kernel, strides=1, padding="SAME")
    pool = tf.nn.max_pool2d if number % 2 else tf.nn.avg_pool2d
    made = pool(made, ksize=2, strides=1, padding="SAME")
    return tf.tanh(tf.reshape(made, a.shape))


def _reduce(a: Any, b: Any, number: int) -> Any:
    reduction = (tf.reduce_mean, tf.reduce_max, tf.reduce_sum, tf.math.cumsum)[number % 4]
    if reduction is tf.math.cumsum:
        return tf.tanh(reduction(a, axis=number // 4 % 2))
    return tf.tanh(reduction(a, axis=number // 4 % 2, keepdims=True))


def _concatenate(a: Any, b: Any, number: int) -> Any:
    if number % 2:
        return tf.concat([a, _rows(b, a.shape[0])], axis=1)[:, -LARGEST:]
    return tf.concat([_columns(b, a.shape[1]), a], axis=0)[:LARGEST]


def _split(a: Any, b: Any, number: int) -> Any:
    axis = number % 2
    if a.shape[axis] % 2:
        parts = tf.unstack(a, axis=axis)
        return tf.stack([parts[-1], parts[0]], axis=axis)
    first, second = tf.split(a, 2, axis=axis)
    # Not `-tf.concat`: a negation hands on the gradient of rows gathered of it as rows, and the concatenation then asks
    # which indices are in which part: refused, see test_kernels.
    return first * 0.5 + second if number // 2 % 2 else tf.concat([second, first], axis=axis) * -1.0


def _slice(a: Any, b: Any, number: int) -> Any:
    row, column = number % a.shape[0], number // 7 % a.shape[1]
    return tf.slice(a, [row, column], [-1, -1]) if number % 2 else a[row:, ::-1]


def _gather(a: Any, b: Any, number: int) -> Any:
    if number % 2:
        return tf.gather(a, [number % a.shape[0], 0, number // 2 % a.shape[0]])
    chosen = tf.argmax(a, axis=1, output_type=tf.int32)
    return tf.gather(a, chosen % a.shape[0]) if number // 2 % 2 else tf.one_hot(chosen, a.shape[1]) - a


def _choose(a: Any, b: Any, number: int) -> Any:
    b = _like(b, a)
    if number % 2:
        return tf.where(a > b, a, tf.zeros_like(a) + b * 0.5)
    return tf.cast(tf.cast(a > b, tf.int32) + 1, tf.float32) * a / 2.0


def _shape_arithmetic(a: Any, b: Any, number: int) -> Any:
    """What scripts do with shapes that they do not look at in Python."""
    shape = tf.shape(a)
    if number % 2:
        return tf.reshape(tf.reshape(a, [-1]), tf.stack([shape[1], shape[0]]))
    return tf.ensure_shape(tf.broadcast_to(_like(b, a), shape), a.shape) * 0.5


_OPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "add": lambda a, b, number: (a + _like(b, a)) * 0.5,
    "multiply": lambda a, b, number: tf.tanh(a * _like(b, a)),
    "maximum": lambda a, b, number: tf.maximum(a, _like(b, a)) if number % 2 else tf.minimum(_like(b, a), a),
    "relu": lambda a, b, number: tf.nn.relu(a) if number % 2 else tf.nn.leaky_relu(a),
    "tanh": lambda a, b, number: tf.tanh(a) if number % 2 else tf.sigmoid(a),
    "softmax": lambda a, b, number: tf.nn.softmax(a) if number % 2 else tf.nn.log_softmax(a) * 0.2,
    "matmul": _matmul,
    "convolution": _convolution,
    "reduce": _reduce,
    "concatenate": _concatenate,
    "split": _split,
    "slice": _slice,
    "gather": _gather,
    "choose": _choose,
    "reshape": lambda a, b, number: tf.reshape(a, [a.shape[1], a.shape[0]]) if number % 2 else tf.transpose(a),
    "shape_arithmetic": _shape_arithmetic,
    "stop_gradient": lambda a, b, number: tf.stop_gradient(a) * 0.9 if number % 2 else tf.identity(a),
}


class Builder:
    """Builds one random model.

    Args:
        parts: what differs between the runs.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._serial = 0

    def build(self, instructions: Sequence[Instruction], pool: list[Any]) -> list[Any]:
        """Adds what instructions make to a pool of matrices."""
        for instruction in instructions:
            self._marked(instruction, instruction.shards, pool)
        return pool

    def _marked(self, instruction: Instruction, shards: Sequence[int], pool: list[Any]) -> None:
        if shards:
            with self._parts.shard(shards[0]):
                self._marked(instruction, shards[1:], pool)
            return
        a, b = pool[instruction.first % len(pool)], pool[instruction.second % len(pool)]
        if instruction.kind in _OPS:
            pool.append(_OPS[instruction.kind](a, b, instruction.number))
        else:
            pool.append(getattr(self, f"_{instruction.kind}")(instruction, a, b))

    def _variable(self, instruction: Instruction, a: Any, b: Any) -> Any:
        """A weight for `a`, in one of a few ways of using one."""
        self._serial += 1
        random = np.random.default_rng(instruction.number)
        value = random.normal(size=(a.shape[1], instruction.number % 3 + 1))
        weight = self._parts.variable(f"weight_{self._serial}", value)
        return tf.tanh(tf.matmul(a, weight))

    def _assign(self, instruction: Instruction, a: Any, b: Any) -> Any:
        """A state that each step changes: read, changed, read again."""
        self._serial += 1
        state = self._parts.variable(f"state_{self._serial}", np.full(a.shape.as_list(), instruction.number / 8))
        before = state.read_value()
        with tf.control_dependencies([before, a]):
            update = state.assign_add(a * 0.1) if instruction.number % 2 else state.assign(tf.tanh(before + a))
        with tf.control_dependencies([update.op if isinstance(update, tf.Tensor) else update]):
            return tf.tanh(before + state.read_value())

    def _cond(self, instruction: Instruction, a: Any, b: Any) -> Any:
        predicate = tf.reduce_mean(b) > 0.1 * (instruction.number % 5 - 2) + 0.01

        def branch(body: Sequence[Instruction], scale: float) -> Callable[[], Any]:
            # A branch uses what is outside of it, so that there is something to capture.
            return lambda: _to_shape(self._body(body, [a * scale, b]), a) + 0.1 * _like(b, a)

        return tf.cond(predicate, branch(instruction.bodies[0], 1.0), branch(instruction.bodies[1], -1.0))

    def _loop(self, instruction: Instruction, a: Any, b: Any) -> Any:
        count = instruction.number % 3 + 1

        def body(index: Any, x: Any, y: Any) -> Any:
            made = self._body(instruction.bodies[0], [x, y, b])
            return index + 1, tf.tanh(_to_shape(made, x) + x), y * 0.5 + _like(x, y)

        start = (tf.constant(0), a, _to_shape(b, a) * 1.0)
        _, x, y = v1.while_loop(
            lambda index, x, y: index < count, body, start, maximum_iterations=count + instruction.number % 2
        )
        return tf.tanh(x + y * 0.1)

    def _call(self, instruction: Instruction, a: Any, b: Any) -> Any:
        return tf.function(lambda x: _to_shape(self._body(instruction.bodies[0], [x, b]), x), autograph=False)(a)

    def _body(self, instructions: Sequence[Instruction], pool: list[Any]) -> Any:
        return self.build(instructions, pool)[-1]


def _to_shape(matrix: Any, other: Any) -> Any:
    return _columns(_rows(matrix, other.shape[0]), other.shape[1])


def model_of(description: Description) -> Callable[..., list[Any]]:
    """The model that a description is of, for TensorFlow 1 graphs; it returns tensors, then an operation."""

    def model(parts: Parts, *inputs: Any) -> list[Any]:
        results, loss, weights = _forward(description, parts, inputs)
        if description.training == "none":
            return results
        gradients = v1.gradients(loss, [*inputs, *weights])
        found = [gradient for gradient in gradients if gradient is not None]
        if description.training == "gradients" or not weights:
            return [*results, loss, *map(tf.convert_to_tensor, found)]
        pairs = [(g, w) for g, w in zip(gradients[len(inputs) :], weights) if g is not None]
        updates = [OPTIMIZERS[description.training]().apply_gradients(pairs)] if pairs else []
        return [*results, loss, *updates]

    return model


def eager_model_of(description: Description) -> Callable[..., list[Any]]:
    """The same for `tf.function`: gradients by a tape, applied by hand."""

    def model(parts: Parts, *inputs: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            results, loss, weights = _forward(description, parts, inputs)
        if description.training == "none":
            return results
        gradients = tape.gradient(loss, [*inputs, *weights])
        found = [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]
        with tf.control_dependencies([*results, *found]):
            for gradient, weight in zip(gradients[len(inputs) :], weights):
                if gradient is not None and description.training != "gradients":
                    weight.assign_sub(0.1 * gradient)
        return [*results, loss, *found]

    return model


def _forward(description: Description, parts: Parts, inputs: Sequence[Any]) -> tuple[list[Any], Any, list[Any]]:
    pool = Builder(parts).build(description.instructions, list(inputs))
    results = [tf.convert_to_tensor(matrix) for matrix in pool[len(inputs) :]][-3:]
    loss = tf.add_n([tf.reduce_mean(tf.square(matrix - 0.3)) for matrix in results])
    return results, loss, [variable for name, variable in parts.variables.items() if name.startswith("weight")]


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "gradient_descent": lambda: v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: v1.train.AdamOptimizer(0.01, epsilon=1e-3),
    "rmsprop": lambda: v1.train.RMSPropOptimizer(0.01, epsilon=1e-3),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
}

_shards = st.lists(st.integers(0, NUM_IPUS - 1), max_size=2).map(tuple)
_pick = st.integers(0, 11)
_BODIES = {"cond": 2, "loop": 1, "call": 1}


def _instruction(kinds: Sequence[str], depth: int) -> st.SearchStrategy[Instruction]:
    def of_kind(kind: str) -> st.SearchStrategy[Instruction]:
        bodies = st.just(())
        if kind in _BODIES:
            inner_kinds = _inside(kinds, kind, depth - 1)
            inner = st.lists(_instruction(inner_kinds, depth - 1), min_size=1, max_size=4).map(tuple)
            bodies = st.tuples(*[inner] * _BODIES[kind])
        return st.builds(Instruction, st.just(kind), _pick, _pick, st.integers(0, 41), _shards, bodies)

    return st.sampled_from(kinds).flatmap(of_kind)


def _inside(kinds: Sequence[str], kind: str, depth: int) -> list[str]:
    """What may stand in the body of a loop, branch or call."""
    refused = {"variable", "assign"}  # variables are made outside, as TensorFlow 1 wants it
    # Stock XLA, the oracle, cannot compile some gradients: it has no `FakeParam` for the lists of a loop in a branch,
    # and shapes that a called function in a loop or branch hands to its gradient are no constants there.
    refused |= {"cond": {"loop", "call"}, "loop": {"call"}}.get(kind, set())
    return [other for other in kinds if other not in refused and (depth or other not in _BODIES)]


def descriptions(size: int = 14, training: Sequence[str] = ("none", "gradients", *OPTIMIZERS)) -> st.SearchStrategy:
    """Random models.

    Args:
        size: instructions at the most.
        training: what to choose from.
    """
    shape = st.tuples(st.integers(1, 4), st.integers(1, 4))
    kinds = [*_OPS, *["variable", "assign"] * 3, *list(_BODIES) * 2]
    return st.builds(
        Description,
        st.lists(shape, min_size=2, max_size=3).map(tuple),
        st.lists(_instruction(kinds, 2), min_size=size // 2, max_size=size).map(tuple),
        st.sampled_from(training),
        st.integers(0, 1000),
    )


def examples(number: int) -> settings:
    """How hypothesis runs a test on random models.

    They are always the same, so that a failure is seen by who caused it. With `NEW_MODELS=20` in the environment each
    test has 20 others, which follow from pytest's option `--hypothesis-seed`.

    Args:
        number: of models; 0: only those that the test itself names.
    """
    new = int(os.environ.get("NEW_MODELS", "0"))
    drawn = [Phase.generate] if new or number else []
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    # No shrinking: each try is compiled, which takes minutes. The report shows the first model that failed.
    return settings(
        max_examples=new + 1 if new else max(number, 1),  # the first is the simplest, whatever the seed
        deadline=None,
        derandomize=not new,
        database=None,
        phases=drawn if new else [Phase.explicit, *drawn],
        suppress_health_check=checks,
        print_blob=True,
    )
