"""Automatic loss scaling: adjusts the scale from gradient histograms, for the optimizers of all SDKs.

The magnitudes of scaled float16 gradients are counted in two bins. Every few updates the share of the upper bin
decides. If it is too large, the factor is divided; else it is multiplied, up to a limit. It is never less than one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.frontend.tracing.internal_variables import internal
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, clip_ops, math_ops
from tf_ipu_shim.tf_private.tensors import constant_op, indexed_slices
from tf_ipu_shim.tf_private.variables import resource_variable_ops


@dataclasses.dataclass(frozen=True)
class LossScaleRules:
    """When and how the factor changes.

    Args:
        update_frequency: updates between two changes.
        increase_factor: the factor is multiplied by it if few gradients are large.
        decrease_factor: the factor is multiplied by it if too many are.
        maximum: the factor stays below.
        accumulate: whether all gradients since the last change count, or only the last update's.
        ratio_threshold: the largest allowed share of large gradients.
        lpf_alpha: the share of older counts that is kept.
        edge: magnitude from which a gradient is large.
        late: whether the first change comes one update after the first period, which only a period of one hides.
    """

    update_frequency: int
    increase_factor: float
    decrease_factor: float
    maximum: float
    accumulate: bool
    ratio_threshold: float
    lpf_alpha: float = 0.0
    edge: float = 2.0**13
    late: bool = True

    @property
    def delay(self) -> int:
        """The number of updates between the period's end and the first change."""
        return int(self.late and self.update_frequency > 1)


# The first optimizers, of SDK 2.2 to 2.6, decide by gradients that overflow in float16.
FIRST_FORM: dict[str, Any] = {"edge": float(dtypes.float16.max), "late": False}


def gradient_histogram(gradients: Iterable[Any], edge: float) -> Any:
    """Counts magnitudes below an edge, and from it up.

    Example:
        >>> gradient_histogram([tf.constant([1.0, -9.0, 2.0], tf.float16)], 8.0).numpy().tolist()
        [2.0, 1.0]
    """
    counts = constant_op.constant([0.0, 0.0])
    for gradient in gradients:
        if gradient is None or gradient.dtype != dtypes.float16:
            continue
        values = gradient.values if isinstance(gradient, indexed_slices.IndexedSlices) else gradient
        # In float32: float16 has no larger value to compare with.
        small = math_ops.abs(math_ops.cast(values, dtypes.float32)) < edge
        in_range = math_ops.reduce_sum(math_ops.cast(small, dtypes.float32))
        counts += _add_pair(in_range, math_ops.cast(array_ops.size(values), dtypes.float32) - in_range)
    return counts


def _add_pair(first: Any, second: Any) -> Any:
    return array_ops.concat([array_ops.reshape(first, [1]), array_ops.reshape(second, [1])], 0)


def _next_counts(rules: LossScaleRules, due: Any, before: Any, counts: Any) -> Any:
    """Returns the counts that the next update begins with."""
    if rules.accumulate:
        return array_ops.where_v2(due, rules.lpf_alpha * counts, counts)
    # Only the deciding update is counted then: only a filter keeps values.
    return array_ops.where_v2(due, counts, before) if rules.lpf_alpha else array_ops.zeros_like(counts)


def unscale_gradient(gradient: Any, factor: Any) -> Any:
    """Divides a gradient of the scaled loss by the factor; an overflow is the largest float16 value.

    The IPU clips such numbers anyway. On the IPU Model accumulated gradients may be infinite, and would destroy the
    weights.

    Source: docs/reference/facts.md, section "float16 that overflows".
    """
    if gradient is None:
        return None
    if isinstance(gradient, indexed_slices.IndexedSlices):
        values = unscale_gradient(gradient.values, factor)
        return indexed_slices.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    if gradient.dtype == dtypes.float16:
        gradient = clip_ops.clip_by_value(gradient, dtypes.float16.min, dtypes.float16.max)
    return gradient / math_ops.cast(factor, gradient.dtype)


class LossScaleState:
    """Variables with the loss-scaling factor and the counters that adjust it.

    Args:
        initial: the initial factor.
    """

    def __init__(self, initial: float) -> None:
        self.initial = initial
        self._variables: dict[str, Any] = {}
        self._captured: Any = None

    @property
    def factor(self) -> Any:
        """The factor for the next loss."""
        return self._all()["loss_scaling_factor"]

    @property
    def previous_factor(self) -> Any:
        """Before the last update."""
        return self._all()["previous_loss_scaling_factor"]

    @property
    def counter(self) -> Any:
        """Updates since the factor was last decided on."""
        return self._all()["update_counter"]

    @property
    def histogram(self) -> Any:
        """Gradients counted since then: those below the edge, those above."""
        return self._all()["gradient_histogram"]

    def _all(self) -> dict[str, Any]:
        if not self._variables:  # not earlier: they belong on the device that trains
            with ops.init_scope():
                self._variables = {
                    name: self._variable(value, name, dtype)
                    for name, value, dtype in (
                        ("loss_scaling_factor", float(self.initial), dtypes.float32),
                        ("previous_loss_scaling_factor", float(self.initial), dtypes.float32),
                        ("update_counter", 0, dtypes.int32),
                        ("gradient_histogram", [0.0, 0.0], dtypes.float32),
                    )
                }
        return self._variables

    @staticmethod
    def _variable(value: Any, name: str, dtype: Any) -> Any:
        return internal(
            resource_variable_ops.ResourceVariable(
                lambda: constant_op.constant(value, dtype), trainable=False, name=name, dtype=dtype
            )
        )

    def normalized_histogram(self) -> Any:
        """Returns the shares of both bins; zeros before anything was counted."""
        counts = self.histogram.read_value()
        return math_ops.div_no_nan(counts, math_ops.reduce_sum(counts))

    def count(self, rules: LossScaleRules, gradients: Iterable[Any]) -> Any:
        """Counts gradients of one of the mini-batches of the next update."""
        if self._captured is None:
            with ops.init_scope():
                self._captured = self._variable([0.0, 0.0], "captured_gradient_histogram", dtypes.float32)
        return self._captured.assign_add(gradient_histogram(gradients, rules.edge), read_value=False)

    def advance(self, rules: LossScaleRules, gradients: Iterable[Any]) -> list[Any]:
        """Counts an update's gradients, and changes the factor at the end of its period."""
        factor, counter, before = self.factor.read_value(), self.counter.read_value(), self.histogram.read_value()
        new = gradient_histogram(gradients, rules.edge)
        if self._captured is not None:
            new += self._captured.read_value()
        counts = before + new if rules.accumulate else rules.lpf_alpha * before + (1 - rules.lpf_alpha) * new
        due = counter >= rules.update_frequency - 1 + rules.delay
        # A value that is not a number is in neither "below" nor an honest gradient: the upper bin takes it.
        too_many = math_ops.div_no_nan(counts[1], math_ops.reduce_sum(counts)) > rules.ratio_threshold
        lower = math_ops.maximum(factor * rules.decrease_factor, 1.0)
        higher = factor * rules.increase_factor
        higher = array_ops.where_v2(higher < rules.maximum, higher, factor)
        changed = array_ops.where_v2(due, array_ops.where_v2(too_many, lower, higher), factor)
        done = [] if self._captured is None else [self._captured.assign([0.0, 0.0], read_value=False)]
        return [
            *done,
            self.previous_factor.assign(factor, read_value=False),
            self.factor.assign(changed, read_value=False),
            self.counter.assign(array_ops.where_v2(due, rules.delay, counter + 1), read_value=False),
            self.histogram.assign(_next_counts(rules, due, before, counts), read_value=False),
        ]

    def reset(self) -> list[Any]:
        """Starts again with the initial factor."""
        return [
            self.previous_factor.assign(float(self.initial)),
            self.factor.assign(float(self.initial)),
            self.counter.assign(0),
            self.histogram.assign([0.0, 0.0]),
            *([] if self._captured is None else [self._captured.assign([0.0, 0.0])]),
        ]


def check_room(initial: float, increase: float, maximum: float) -> None:
    """Checks that the initial factor can be increased at least once."""
    if initial >= maximum:
        raise ValueError(
            "initial_loss_scaling_factor must be less than max_loss_scaling_factor: "
            f"{initial} and {maximum} were given. Lower initial_loss_scaling_factor."
        )
    if initial * increase >= maximum:
        raise ValueError(
            "initial_loss_scaling_factor x increase_factor must be less than max_loss_scaling_factor: "
            f"{initial} x {increase} is not less than {maximum}. Lower one of the two factors."
        )


def check_ratio(ratio_threshold: float) -> None:
    """Checks the largest allowed share of large gradients."""
    if not 0.0 < ratio_threshold < 1.0:
        raise ValueError(
            f"ratio_threshold must be greater than zero and less than one. It is {ratio_threshold}. Pass a value "
            "between 0 and 1."
        )


class LossScaling:
    """The base of all optimizers with automatic loss scaling: their state, its values, and the rules."""

    update_frequency: Any
    increase_factor: Any
    decrease_factor: Any
    max_loss_scaling_factor: Any
    accumulate_statistics_over_update_period: bool
    ratio_threshold: Any
    _state: LossScaleState

    def _form(self) -> dict[str, Any]:
        """Returns the rules in which this optimizer differs from others."""
        return FIRST_FORM

    def _rules(self) -> LossScaleRules:
        return LossScaleRules(
            self.update_frequency,
            self.increase_factor,
            self.decrease_factor,
            self.max_loss_scaling_factor,
            self.accumulate_statistics_over_update_period,
            self.ratio_threshold,
            **self._form(),
        )

    @property
    def loss_scaling_factor(self) -> Any:
        """The factor for the next loss."""
        return self._state.factor

    @property
    def histogram(self) -> Any:
        """Gradients counted since the last change of the factor: small ones, large ones."""
        return self._state.histogram

    @property
    def normalized_histogram(self) -> Any:
        """The shares of small and large gradients."""
        return self._state.normalized_histogram()

    @property
    def update_counter(self) -> Any:
        """Updates since the last change of the factor."""
        return self._state.counter
