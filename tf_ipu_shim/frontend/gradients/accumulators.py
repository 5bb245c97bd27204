"""Accumulates the gradients of several mini-batches into one update, for pipelines and accumulating optimizers.

Graphcore's compiler cuts the loop in two; here the state is in variables that only the program knows. They are in no
collection, so checkpoints contain only the model, and each loop sets them to zero before it begins.

`cond_v2.cond_v2`, `ResourceVariable` made in `init_scope` and `Operation._add_control_inputs` checked on TensorFlow
2.15.1 and 2.21.0.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod as Reduction
from tf_ipu_shim.frontend.tracing.internal_variables import internal
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private import variables as tf_variables
from tf_ipu_shim.tf_private.control_flow import cond_v2, control_flow_ops
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2
from tf_ipu_shim.tf_private.variables import gen_resource_variable_ops, resource_variable_ops


def add_gradient(total: Any, gradient: Any, mini_batch: Any, count: int, method: Reduction) -> Any:
    """Adds a mini-batch's gradient to those before it.

    Example:
        >>> float(add_gradient(tf.constant(10.0), tf.constant(4.0), 3, 8, Reduction.MEAN))
        10.5
    """
    with ops.name_scope("GradientAccumulatorAddWithScale"):  # as Graphcore calls the op, and profiles with it
        if method is Reduction.SUM:
            return total + gradient
        # Gradients are scaled, as an IPU does it: a quotient would be rounded otherwise.
        if method is Reduction.MEAN:
            return total + gradient * (1 / math_ops.cast(count, gradient.dtype))
        index = math_ops.cast(mini_batch, gradient.dtype)
        scale = 1 / (index + 1)
        return total * (index * scale) + gradient * scale


def resolve_accumulator_dtype(chosen: Any, variable: Any, argument: str = "dtype") -> Any:
    """Returns the type in which a variable's gradients are accumulated.

    Example:
        >>> resolve_accumulator_dtype(lambda variable: tf.float32, tf.Variable(1.0, dtype=tf.float16))
        tf.float32
    """
    dtype = _resolve_dtype(chosen, variable, argument)
    if not dtype.is_floating and chosen is not None:
        raise ValueError(
            f"Gradients of {getattr(variable, 'name', 'a variable')} cannot be accumulated in {dtype.name}: they have "
            f"fractions. Give {argument} a floating-point type."
        )
    return dtype


def resolve_sum_dtype(chosen: Any, tensor: Any, argument: str) -> Any:
    """Returns the dtype in which values of a tensor are accumulated; counters may be accumulated in integers.

    Example:
        >>> resolve_sum_dtype(lambda tensor: tensor.dtype, tf.constant([3, 4]), "accumulate_outfeed_dtype")
        tf.int32
    """
    dtype = _resolve_dtype(chosen, tensor, argument)
    if tensor.dtype.is_floating and not dtype.is_floating:
        raise ValueError(
            f"An output of {tensor.dtype.name} cannot be added up in {dtype.name}: it has fractions. Give {argument} a "
            "floating-point type, or a function from tensor to type."
        )
    return dtype


def _resolve_dtype(chosen: Any, value: Any, argument: str) -> Any:
    if chosen is None:
        return value.dtype.base_dtype
    try:
        return dtypes.as_dtype(chosen)
    except TypeError:
        dtype = chosen(value) if callable(chosen) else chosen
    try:
        return dtypes.as_dtype(dtype)
    except TypeError:
        description = f"is a function that returned {dtype!r}" if callable(chosen) else f"is {dtype!r}"
        raise TypeError(
            f"{argument} {description}, which TensorFlow cannot convert to a type. Pass a tf.DType, or a function that "
            "returns one."
        ) from None


@dataclasses.dataclass
class _TracedLoop:
    """A loop whose body is being traced, and its accumulators."""

    graph: Any
    iterations: int | None
    new: list[_AccumulatorVariable] = dataclasses.field(default_factory=list)
    counters: dict[_AccumulatorVariable, int] = dataclasses.field(default_factory=dict)

    @property
    def is_outermost(self) -> bool:
        """Returns whether it is in a session's graph or in a program of one: ops there run only in a session."""
        return not self.graph.building_function or not self.graph.outer_graph.building_function


class _LoopStack(threading.local):
    """The loops whose bodies this thread is tracing, the outermost first."""

    def __init__(self) -> None:
        self.loops: list[_TracedLoop] = []


_tracing = _LoopStack()
_COUNTER = "counter"


@contextlib.contextmanager
def trace_loop(iterations: int | None) -> Iterator[Callable[[Any], None]]:
    """Surrounds the tracing of an `ipu.loops` loop."""
    loop = _TracedLoop(ops.get_default_graph(), iterations)
    _tracing.loops.append(loop)
    try:
        yield lambda result: _reset_accumulators(loop, result)
    finally:
        _tracing.loops.remove(loop)


def _reset_accumulators(loop: _TracedLoop, result: Any) -> None:
    if context.executing_eagerly() or not (loop.new or loop.counters):
        return
    operation = _find_loop(result)
    tf_graphs.add_control_inputs(operation, [state.write(state.zeros()) for state in loop.new])
    if loop.iterations is None:
        for counter in loop.counters:
            if not counter.is_new:
                counter.write(counter.zeros())  # comes after the loop: functions keep the script's order
        return
    counts = [to_reset for count in dict.fromkeys(loop.counters.values()) for to_reset in (loop.iterations, count)]
    if counts:
        tf_graphs.set_attr(
            operation,
            vocabulary.ACCUMULATION_ATTRIBUTE,
            attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(i=counts)),
        )


def annotate_state_placement(result: Any, offload: bool | None, sharding: bool | None) -> None:
    """Tells the memory model where the optimizer of a loop's gradients keeps its state."""
    options = json.dumps([offload, sharding]).encode()
    tf_graphs.set_attr(_find_loop(result), vocabulary.UPDATE_ATTRIBUTE, attr_value_pb2.AttrValue(s=options))


def _find_loop(result: Any) -> Any:
    operation = result.op
    while operation.type not in vocabulary.LOOPS:
        operation = operation.inputs[0].op
    return operation


class _AccumulatorVariable:
    """A variable that the program keeps for itself, on the device of the accumulated tensor.

    Args:
        is_new: whether a loop sets it to zero before it begins; else it is an ordinary variable.
        options: the value of `vocabulary.ACCUMULATOR_ATTRIBUTE`.
    """

    def __init__(self, shape: Any, dtype: Any, device: str, is_new: bool, options: bytes) -> None:
        self.is_new = is_new
        self._options = options
        self._shape = shape
        self._dtype = dtype
        with ops.init_scope():
            graph = None if context.executing_eagerly() else ops.get_default_graph()
            name = "accumulator" if graph is None else graph.unique_name("accumulator")
            with ops.device(device), ops.name_scope(""):
                if not is_new:
                    self._owner = resource_variable_ops.ResourceVariable(self.zeros, trainable=False, name=name)
                    self._handle = self._owner.handle
                else:
                    self._handle = gen_resource_variable_ops.var_handle_op(dtype, shape, shared_name=name, name=name)
                internal(self._handle)

    def zeros(self) -> Any:
        return array_ops.zeros(self._shape, self._dtype)

    def read(self) -> Any:
        value = gen_resource_variable_ops.read_variable_op(self._handle, self._dtype)
        value.set_shape(self._shape)
        return value

    def write(self, value: Any) -> Any:
        written = gen_resource_variable_ops.assign_variable_op(self._handle, value)
        if written is not None:  # eagerly there is no op to mark
            tf_graphs.set_attr(written, vocabulary.ACCUMULATOR_ATTRIBUTE, attr_value_pb2.AttrValue(s=self._options))
        return written


class GradientAccumulator:
    """Accumulates gradients between an optimizer's updates.

    Args:
        count: mini-batches for each update.
        method: how they are reduced.
        dtype: the dtype of the accumulators; see `resolve_accumulator_dtype`.
        offload: whether optimizer state is in remote memory; None if the script left it open.
        sharding: whether replicas each have a part of it. For the memory model, both.

    Example:
        >>> with tf.Graph().as_default():
        ...     weight = tf.compat.v1.get_variable("w", initializer=2.0)
        ...     sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        ...     accumulation = GradientAccumulator(4, Reduction.SUM, None)
        ...     train_op = accumulation.update(sgd.compute_gradients(tf.square(weight)), sgd.apply_gradients)
    """

    def __init__(
        self, count: int, method: Reduction, dtype: Any, offload: bool | None = None, sharding: bool | None = None
    ) -> None:
        self._count = count
        self._method = method
        self._dtype = dtype
        self._options = json.dumps([offload, sharding]).encode()
        self._states: dict[Any, _AccumulatorVariable] = {}

    def update(
        self,
        grads_and_vars: Sequence[tuple[Any, Any]],
        apply: Callable[[list[tuple[Any, Any]]], Any],
        keeps_dtype: bool = False,
    ) -> Any:
        """Accumulates the gradients of one mini-batch; with the last one, applies them all.

        Args:
            grads_and_vars: pairs of gradient and variable; a gradient may be None.
            apply: a function of such pairs, of reduced gradients.
            keeps_dtype: whether it receives them in the accumulators' type, not in the type of the given ones.

        Returns:
            An operation; None if ops run eagerly.
        """
        if self._count == 1:
            return apply(list(grads_and_vars))
        used = [(ops.convert_to_tensor(gradient), v) for gradient, v in grads_and_vars if gradient is not None]
        if not used:
            return apply(list(grads_and_vars))
        counter = self._state(_COUNTER, [], dtypes.int32, used[0][1])
        mini_batch = counter.read()
        totals, written = [], []
        for gradient, variable in used:
            dtype = resolve_accumulator_dtype(self._dtype, variable)
            state = self._state(_variable_key(variable), variable.shape, dtype, variable)
            # The sum is read once its gradient is there: it is added to where it is, and not copied before.
            with _colocate_with(gradient), ops.control_dependencies([gradient]):
                before = array_ops.where_v2(math_ops.equal(mini_batch, 0), state.zeros(), state.read())
                total = add_gradient(before, math_ops.cast(gradient, dtype), mini_batch, self._count, self._method)
                written.append(state.write(total))
                totals.append(total)
        is_last = math_ops.equal(mini_batch, self._count - 1)
        written.append(counter.write(array_ops.where_v2(is_last, 0, mini_batch + 1)))

        def apply_totals() -> Any:
            types = [total.dtype if keeps_dtype else gradient.dtype for total, (gradient, _) in zip(totals, used)]
            reduced = iter([(math_ops.cast(total, kind), v) for total, kind, (_, v) in zip(totals, types, used)])
            return apply([(None, v) if gradient is None else next(reduced) for gradient, v in grads_and_vars])

        if context.executing_eagerly():
            return apply_totals() if bool(is_last) else None
        return control_flow_ops.group(*written, _run_if(is_last, apply_totals))

    def totals(
        self, grads_and_vars: Sequence[tuple[Any, Any]], total_scale: Any = 1.0, gradient_scale: Any = None
    ) -> list[tuple[Any, Any]]:
        """Adds the gradients of one mini-batch, and returns the sums since the enclosing loop began.

        Args:
            grads_and_vars: pairs of gradient and variable; a gradient may be None.
            total_scale: a number or scalar by which the sum before is multiplied.
            gradient_scale: a factor for the new gradients; None leaves them unchanged.

        Returns:
            Pairs of sum, in the accumulators' type, and variable.
        """
        summed = []
        for gradient, variable in grads_and_vars:
            if gradient is None:
                summed.append((None, variable))
                continue
            gradient, dtype = ops.convert_to_tensor(gradient), resolve_accumulator_dtype(self._dtype, variable)
            state = self._state(_variable_key(variable), variable.shape, dtype, variable)
            with _colocate_with(gradient), ops.name_scope("GradientAccumulatorAddWithScale"):
                new = math_ops.cast(gradient, dtype)
                if gradient_scale is not None:
                    new *= math_ops.cast(gradient_scale, dtype)
                total = state.read() * math_ops.cast(total_scale, dtype) + new
                written = state.write(total)
                with ops.control_dependencies([] if written is None else [written]):
                    summed.append((array_ops.identity(total), variable))
        return summed

    def _state(self, key: Any, shape: Any, dtype: Any, variable: Any) -> _AccumulatorVariable:
        loops = _tracing.loops
        with ops.init_scope():
            home = None if context.executing_eagerly() else ops.get_default_graph()
        is_new = home is not None and bool(loops) and loops[0].is_outermost
        identity = (key, home and id(home), dtype, is_new)
        if identity not in self._states:
            self._states[identity] = _AccumulatorVariable(shape, dtype, variable.device, is_new, self._options)
        state = self._states[identity]
        if is_new and state not in loops[0].new:
            loops[0].new.append(state)
        if loops and key == _COUNTER:
            loops[-1].counters[state] = self._count
        graph = ops.get_default_graph()
        while graph is not None and home is None and not context.executing_eagerly():
            # The optimizer may be gone before the function that was traced with it.
            graph._ipu_accumulators = (*getattr(graph, "_ipu_accumulators", ()), state)
            graph = getattr(graph, "outer_graph", None)
        return state


def _run_if(condition: Any, action: Callable[[], Any]) -> Any:
    def done() -> Any:
        with ops.control_dependencies([operation for operation in [action()] if operation is not None]):
            return array_ops.constant(True)

    return cond_v2.cond_v2(condition, done, lambda: array_ops.constant(False)).op


def _variable_key(variable: Any) -> Any:
    return tf_variables.unique_id(variable) or variable.ref()


def _colocate_with(tensor: Any) -> Any:
    return contextlib.nullcontext() if context.executing_eagerly() else ops.colocate_with(tensor)
