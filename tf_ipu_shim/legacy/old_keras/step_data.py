"""Feeds the data of one `fit`, `evaluate` or `predict` of an `ipu.keras` model (SDK 1.2 to 2.1), step by step.

A step of an old model is one update of its weights: as many mini-batches as it accumulates, on each replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.frontend.keras.training.data_adapter import IPUDataHandler
from tf_ipu_shim.frontend.validation.counts import check_whole
from tf_ipu_shim.tf_private.datasets import cardinality, dataset_ops

_GRADIENT_ACCUMULATION_COUNT_SINCE = (2, 0)  # called accumulation_count before
_INPUTS_AND_TARGETS = (2, 3)


class StepData(IPUDataHandler):
    """The data of one call, its steps and its epochs.

    Args:
        owner: name of the model's class, for messages.
        accumulation: mini-batches to a step, on each replica.
        strict: whether data that is not a multiple of a step is refused; if not, a step is then one mini-batch.
        steps: steps of an epoch; by default all of the data.
        steps_per_run: steps of one execution of the compiled program; the whole epoch when left out.
        **data: the data of `IPUDataHandler`.

    Raises:
        ValueError: the data cannot be fed to a compiled program.

    Example:
        >>> x, y = np.ones([64, 4], "f"), np.ones([64, 1], "f")
        >>> data = StepData("Sequential", 4, True, None, None, x=x, y=y, batch_size=8, model=tf.keras.Sequential())
    """

    def __init__(
        self,
        owner: str,
        accumulation: int,
        strict: bool,
        steps: int | None,
        steps_per_run: int | None,
        **data: Any,
    ) -> None:
        if steps is not None:
            steps = check_whole("`steps_per_epoch` (or `steps`)", steps)
        self._owner, self._accumulation, self._strict = owner, accumulation, strict
        self._wanted_steps, self._wanted_steps_per_run = steps, steps_per_run
        self.steps_per_epoch = self.steps_per_run = 0
        if steps is None and isinstance(data.get("x"), dataset_ops.DatasetV2):
            _check_size(int(cardinality.cardinality(data["x"])))
        mini_batches = None if steps is None else steps * accumulation
        super().__init__(steps_per_epoch=mini_batches, replication_factor=None, **data)

    def set_replication_factor(self, value: int) -> None:
        """Tells how many replicas share the data, and divides it into steps."""
        size = self._mini_batches()
        steps = self._wanted_steps
        count = "gradient accumulation" if sdk.current() >= _GRADIENT_ACCUMULATION_COUNT_SINCE else "accumulation"
        if steps is None:
            _check_size(size)
            if size % (self._accumulation * value) and not self._strict:
                self._accumulation = 1
            if size % (self._accumulation * value):
                raise ValueError(
                    f"{self._owner} requires the number of mini-batches in the dataset ({size}) to be a multiple of "
                    f"the {count} count ({self._accumulation}) times the number of replicas ({value}). Change the "
                    "batch size, or give `steps_per_epoch` or `steps`."
                )
            steps = size // (self._accumulation * value)
        elif 0 <= size < steps * self._accumulation * value:
            raise ValueError(
                f"Steps per epoch times {count} count ({steps} x {self._accumulation}) is greater than the number of "
                f"mini-batches in the dataset ({size}) that {value} replicas share. Expected at most as many: use "
                "dataset.repeat(), or fewer steps."
            )
        per_run = self._wanted_steps_per_run or steps
        if per_run < 0 or (per_run and steps % per_run):
            raise ValueError(
                f"{self._owner} requires the number of steps in an epoch ({steps}) to be a multiple of `steps_per_run` "
                f"({per_run}): a run of the program takes as many. Change steps_per_run, or the size of the dataset."
            )
        self.steps_per_epoch, self.steps_per_run = steps, per_run
        self._steps_per_execution = max(per_run * self._accumulation, 1)
        if self._wanted_steps is not None:
            self._steps_per_epoch = steps * self._accumulation * value  # steps are those of each replica here
        super().set_replication_factor(value)

    @property
    def reported_steps(self) -> int:
        """Steps of one run: callbacks are told of steps, not of mini-batches."""
        return self.steps_per_run

    def steps(self) -> Iterator[int]:
        """Yields the number of the first step of each run of an epoch."""
        yield from range(0, self.steps_per_epoch, self.steps_per_run)

    def _mini_batches(self) -> int:
        size = self._adapter.get_size()
        return int(cardinality.cardinality(self._dataset)) if size is None else size


def _check_size(size: int) -> None:
    if size < 0:
        raise ValueError(
            "When using an infinitely repeating dataset, or one of unknown size, you must specify the "
            "number of steps, which is missing. Pass `steps_per_epoch` to fit, or `steps` to evaluate "
            "and predict."
        )


def with_targets(owner: str, x: Any) -> Any:
    """Checks that a dataset yields elements for training and evaluation."""
    if isinstance(x, dataset_ops.DatasetV2):
        spec = x.element_spec
        if not isinstance(spec, tuple) or len(spec) not in _INPUTS_AND_TARGETS:
            raise ValueError(
                f"{owner} requires a dataset with a structure containing a tuple of inputs and targets, not {spec!r}."
                " Return (inputs, targets) from the dataset."
            )
    return x


def inputs_only(owner: str, x: Any, inputs: int) -> Any:
    """Checks that a dataset yields elements for prediction."""
    if not isinstance(x, dataset_ops.DatasetV2) or not isinstance(x.element_spec, tuple) or len(x.element_spec) == 1:
        return x
    if len(x.element_spec) != inputs:
        raise ValueError(
            f"{owner} requires a dataset with a structure containing only the inputs, not {x.element_spec!r}. Leave "
            "the targets out: dataset.map(lambda x, y: x)."
        )
    return x.map(lambda *values: (values,))
