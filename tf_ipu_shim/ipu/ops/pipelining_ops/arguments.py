"""The arguments of a pipeline, checked as Graphcore's are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf_ipu_shim import errors
from tf_ipu_shim.ipu.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from tf_ipu_shim.ipu.ops.pipelining_ops.options import PipelineSchedule, PipelineStageOptions, RecomputationMode


@dataclasses.dataclass
class PipelineArguments:
    """What `pipeline` was called with; see there. Checked, and with defaults filled in."""

    stages: Sequence[Callable[..., Any]]
    count: Any
    repeat_count: int
    inputs: list[Any]
    infeed_queue: IPUInfeedQueue | None
    outfeed_queue: IPUOutfeedQueue | None
    optimizer_function: Callable[..., Any] | None
    device_mapping: Sequence[int] | None
    schedule: PipelineSchedule | None
    accumulator_dtype: Any
    outfeed_loss: bool
    outfeed_mask: Sequence[bool] | None
    accumulate_outfeed: bool
    accumulate_outfeed_dtype: Any
    reduction_method: GradientAccumulationReductionMethod

    @property
    def training(self) -> bool:
        """Whether there is an optimizer."""
        return self.optimizer_function is not None

    def check(self) -> PipelineArguments:
        """Checks everything that can be known before the stages are called.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range, or does not go with another.
        """
        if self.count is None:
            raise ValueError("gradient_accumulation_count must be specified.")
        if isinstance(self.count, (int, np.integer)):
            if self.count < 0:
                raise ValueError(f"gradient_accumulation_count must be >= 0, not {self.count}.")
            if self.count > np.iinfo(np.int32).max:
                raise ValueError(f"gradient_accumulation_count must be < max int32, not {self.count}.")
        if self.schedule is None:
            self.schedule = PipelineSchedule.Grouped
        if not isinstance(self.schedule, PipelineSchedule):
            raise TypeError(f"The given pipeline_schedule is not a member of PipelineSchedule, but {self.schedule!r}.")
        if not isinstance(self.stages, (list, tuple)):
            raise TypeError("computational_stages argument needs to be a list or a tuple of functions.")
        if self.infeed_queue is not None and not isinstance(self.infeed_queue, IPUInfeedQueue):
            raise TypeError("infeed_queue is not an instance of ipu_infeed_queue.IPUInfeedQueue.")
        if self.outfeed_queue is not None and not isinstance(self.outfeed_queue, IPUOutfeedQueue):
            raise TypeError("outfeed_queue is not an instance of ipu_outfeed_queue.IPUOutfeedQueue.")
        if len(self.stages) < 2:
            raise ValueError(f"Pipeline requires at least two computational stages; {len(self.stages)} given.")
        if any(isinstance(stage, (list, tuple)) for stage in self.stages):
            raise errors.UnsupportedError(
                "Concurrent pipeline stages (a list of functions as one stage) are not emulated: put them into one "
                "function, or into stages that follow each other."
            )
        self._check_mapping()
        self._check_outfeed()
        return self

    def _check_mapping(self) -> None:
        if self.device_mapping is None:
            self.device_mapping = list(range(len(self.stages)))
        if not isinstance(self.device_mapping, (list, tuple)):
            raise TypeError("device_mapping argument needs to be a list or a tuple of IPU indices.")
        if len(self.device_mapping) != len(self.stages):
            raise ValueError(
                f"Each stage must be mapped to an IPU: there are {len(self.stages)} stages and a device_mapping of "
                f"{len(self.device_mapping)}."
            )
        if any(isinstance(ipu, (list, tuple)) or ipu < 0 for ipu in self.device_mapping):
            raise errors.UnsupportedError(
                f"device_mapping {list(self.device_mapping)} puts a stage on several IPUs, which is not emulated: give "
                "each stage one IPU."
            )
        if (
            self.schedule is PipelineSchedule.Interleaved
            and self.training
            and len(set(self.device_mapping)) != len(self.device_mapping)
        ):
            raise NotImplementedError(
                "The pipelining schedule 'Interleaved' does not currently support multiple pipeline stages on the same "
                "device for training graphs. Use the schedule 'Grouped'."
            )

    def _check_outfeed(self) -> None:
        for name in ("outfeed_mask", "outfeed_loss"):
            if getattr(self, name) and not self.training:
                raise ValueError(f"An optimizer_function must be provided when {name} is used.")
        if self.outfeed_loss and self.outfeed_mask:
            raise ValueError("Only one of `outfeed_loss` and `outfeed_mask` can be set.")
        if self.outfeed_loss and self.outfeed_queue is None:
            raise ValueError("An outfeed_queue must be provided when outfeed_loss is True.")
        if self.accumulate_outfeed:
            if self.outfeed_queue is None:
                raise ValueError("An outfeed_queue must be provided when accumulate_outfeed is True.")
            if self.outfeed_queue._mode is not IPUOutfeedMode.ALL:
                raise ValueError("To accumulate the outfeed, it must be in IPUOutfeedMode ALL.")


def check_stage_options(name: str, options: Any, stages: int) -> None:
    """Checks the options of the stages.

    Raises:
        TypeError: they are no list of `PipelineStageOptions`.
        ValueError: there are not as many as stages.
    """
    if options is None:
        return
    if not isinstance(options, (list, tuple)):
        raise TypeError(f"{name} must be a list or a tuple of PipelineStageOptions.")
    if len(options) != stages:
        raise ValueError(f"{name} must be a list or a tuple of {stages} options, one a stage, not {len(options)}.")
    for option in options:
        if not isinstance(option, PipelineStageOptions):
            raise TypeError(f"Expected all elements of {name} to be PipelineStageOptions, not {type(option).__name__}.")


def check_recomputation_mode(mode: Any) -> None:
    """Checks the recomputation mode.

    Raises:
        TypeError: it is none.
    """
    if mode is not None and not isinstance(mode, RecomputationMode):
        raise TypeError(f"The given recomputation_mode is not a member of RecomputationMode, but {mode!r}.")
