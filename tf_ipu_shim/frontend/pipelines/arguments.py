"""Validates a pipeline's arguments as Graphcore does."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf_ipu_shim.configuration.types import members
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.pipelines.options import PipelineSchedule, PipelineStageOptions, RecomputationMode
from tf_ipu_shim.frontend.validation import booleans, loop_counts
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private.graphs import ops

ALL_IPUS = -1  # in a device mapping
_SWITCHES = (
    "outfeed_loss",
    "offload_weight_update_variables",
    "replicated_optimizer_state_sharding",
    "offload_activations",
    "offload_gradient_accumulation_buffers",
    "replicated_weight_sharding",
    "offload_weights",
    "gradient_accumulation_for_captured_grads",
)


class AccumulatedOutfeed(enum.Enum):
    """Replaces the accumulated sum if a pipeline enqueues one element per execution."""

    LAST = "the last mini-batch's value, which covers all before it, as a metric of Keras does"


@dataclasses.dataclass
class PipelineArguments:
    """The arguments of `pipeline`, with its names and defaults; `check` replaces some that are left out.

    `shared_variables` accepts variables that stages on several IPUs use. The regularizers of a Keras model use them in
    the last stage.
    """

    computational_stages: Sequence[Any]
    gradient_accumulation_count: Any = None
    gradient_accumulation_dtype: Any = None
    repeat_count: Any = 1
    batch_serialization_iterations: int = 1
    inputs: Sequence[Any] | None = None
    infeed_queue: IPUInfeedQueue | None = None
    outfeed_queue: IPUOutfeedQueue | None = None
    optimizer_function: Callable[..., Any] | None = None
    device_mapping: Sequence[Any] | None = None
    pipeline_schedule: PipelineSchedule | None = None
    recomputation_mode: RecomputationMode | None = None
    forward_propagation_stages_poplar_options: Sequence[PipelineStageOptions] | None = None
    backward_propagation_stages_poplar_options: Sequence[PipelineStageOptions] | None = None
    weight_update_poplar_options: PipelineStageOptions | None = None
    offload_weight_update_variables: bool | None = None
    replicated_optimizer_state_sharding: bool | None = False
    offload_activations: bool | None = None
    offload_gradient_accumulation_buffers: bool | None = None
    replicated_weight_sharding: bool | None = None
    offload_weights: bool | None = None
    continuous_weight_updates: bool = False
    outfeed_loss: bool = False
    accumulate_outfeed: bool | AccumulatedOutfeed = False
    accumulate_outfeed_dtype: Any = None
    outfeed_mask: Sequence[bool] | None = None
    reduction_method: Any = GradientAccumulationReductionMethod.SUM
    name: str | None = None
    gradient_accumulation_for_captured_grads: bool = True
    shared_variables: bool = False

    @property
    def training(self) -> bool:
        """Returns whether the pipeline has an optimizer."""
        return self.optimizer_function is not None

    @property
    def mini_batches(self) -> Any:
        """Elements of the infeed to one execution; an integer, or a tensor."""
        return self.gradient_accumulation_count * self.batch_serialization_iterations

    @property
    def functions(self) -> list[list[tuple[Callable[..., Any], int]]]:
        """For each stage its functions, each with its IPU; several if the stage is concurrent."""
        return [
            list(zip(stage, ipus)) if isinstance(stage, (list, tuple)) else [(stage, ipus)]
            for stage, ipus in zip(self.computational_stages, self.device_mapping or ())
        ]

    def check(self) -> PipelineArguments:
        """Checks everything that can be known before the stages are called."""
        if self.continuous_weight_updates:
            raise NotImplementedError(
                "continuous_weight_updates=True was passed to pipelining_ops.pipeline: Continuous weight "
                "updates are currently not supported. Leave it out."
            )
        if self.inputs is not None and not isinstance(self.inputs, (list, tuple)):
            raise TypeError(f"inputs must be a list or a tuple of tensors for the first stage, not {self.inputs!r}.")
        self.inputs = [ops.convert_to_tensor(value) for value in self.inputs or []]
        self.reduction_method = GradientAccumulationReductionMethod.parse(self.reduction_method)
        self._check_count()
        self._check_repeat_count()
        self._check_schedule()
        self._check_stages()
        self._check_switches()
        self._check_mapping()
        self._check_outfeed()
        self._check_sharding()
        self._check_poplar_options()
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"name must be a string, not {self.name!r}.")
        return self

    def _check_count(self) -> None:
        count = self.gradient_accumulation_count
        if count is None:
            raise ValueError("gradient_accumulation_count must be specified. It is None: pass a number.")
        if not isinstance(count, (int, np.integer)):
            count = loop_counts.check_int32_trip_count("gradient_accumulation_count", count)
        if isinstance(count, (int, np.integer)):
            if count < 0:
                raise ValueError(f"gradient_accumulation_count must be >= 0, not {count}. Pass 0 or more.")
            if count > np.iinfo(np.int32).max:
                raise ValueError(f"gradient_accumulation_count must be < max int32, not {count}. Lower it.")
            count = int(count)
        self.gradient_accumulation_count = count

    def _check_stages(self) -> None:
        if not isinstance(self.computational_stages, (list, tuple)):
            raise TypeError(
                "computational_stages argument needs to be a list or a tuple of functions, not "
                f"{type(self.computational_stages).__name__}. Pass a list."
            )
        if self.infeed_queue is not None and not isinstance(self.infeed_queue, IPUInfeedQueue):
            raise TypeError(
                "infeed_queue is not an instance of ipu_infeed_queue.IPUInfeedQueue. Pass an IPUInfeedQueue."
            )
        if self.outfeed_queue is not None and not isinstance(self.outfeed_queue, IPUOutfeedQueue):
            raise TypeError(
                "outfeed_queue is not an instance of ipu_outfeed_queue.IPUOutfeedQueue. Pass an IPUOutfeedQueue."
            )
        if len(self.computational_stages) < 2:
            raise ValueError(
                f"Pipeline requires at least two computational stages; {len(self.computational_stages)} given. Add a "
                "stage, or compile the function without a pipeline."
            )

    def _check_repeat_count(self) -> None:
        if isinstance(self.repeat_count, (int, np.integer)):
            most = np.iinfo(np.int32).max
            if not 1 <= self.repeat_count <= most:
                raise ValueError(
                    f"repeat_count must be from 1 to {most}, the largest int32, not {self.repeat_count}: it is how "
                    "often the pipeline is executed. Run the program again for more; an infeed goes on where it was."
                )
            self.repeat_count = int(self.repeat_count)
        else:
            self.repeat_count = loop_counts.check_int32_trip_count("repeat_count", self.repeat_count)

    def _check_schedule(self) -> None:
        iterations = check_integer("batch_serialization_iterations", self.batch_serialization_iterations)
        self.batch_serialization_iterations = iterations
        if iterations != 1 and self.reduction_method is not GradientAccumulationReductionMethod.SUM:
            raise ValueError(
                "batch_serialization_iterations != 1 is only supported when reduction_method is SUM. Leave "
                "batch_serialization_iterations out, or set the reduction method to SUM."
            )
        if iterations < 1:
            raise ValueError(f"batch_serialization_iterations must be at least 1, not {iterations}. Pass at least 1.")
        self._check_count_of_parts()
        if self.pipeline_schedule is None:
            self.pipeline_schedule = PipelineSchedule.Sequential if iterations > 1 else PipelineSchedule.Grouped
        if not isinstance(self.pipeline_schedule, PipelineSchedule):
            raise TypeError(
                "The given pipeline_schedule is not a member of PipelineSchedule, but "
                f"{self.pipeline_schedule!r}. Pass one of {members(PipelineSchedule)}."
            )
        if iterations > 1 and self.pipeline_schedule is not PipelineSchedule.Sequential:
            raise NotImplementedError(
                "Batch serialization is only supported with the `Sequential` schedule, not with "
                f"`{self.pipeline_schedule.name}`. Use PipelineSchedule.Sequential."
            )
        if self.recomputation_mode is not None and not isinstance(self.recomputation_mode, RecomputationMode):
            raise TypeError(
                f"The given recomputation_mode is not a member of RecomputationMode, but {self.recomputation_mode!r}. "
                f"Pass one of {members(RecomputationMode)}."
            )

    def _check_count_of_parts(self) -> None:
        most, parts = np.iinfo(np.int32).max, self.batch_serialization_iterations
        count = self.gradient_accumulation_count
        if parts * (count if isinstance(count, int) else 1) > most:
            raise ValueError(
                f"gradient_accumulation_count times batch_serialization_iterations must be up to {most}, the largest "
                f"int32, not {count} times {parts}. Lower one of them."
            )

    def _check_mapping(self) -> None:
        serialised = self.batch_serialization_iterations > 1
        if self.device_mapping is None:
            self.device_mapping = self._on_one_ipu() if serialised else self._one_after_another()
        if not isinstance(self.device_mapping, (list, tuple)):
            raise TypeError(
                "device_mapping argument needs to be a list or a tuple of IPU indices, not "
                f"{type(self.device_mapping).__name__}. Pass a list."
            )
        if len(self.device_mapping) != len(self.computational_stages):
            raise ValueError(
                f"Each stage must be mapped to an IPU: there are {len(self.computational_stages)} stages and a "
                f"device_mapping of {len(self.device_mapping)}. Pass one IPU index for each stage."
            )
        for stage_index, (stage, ipus) in enumerate(zip(self.computational_stages, self.device_mapping)):
            self._check_stage(stage_index, stage, ipus)
        flat = [ipu for stage in self.functions for _, ipu in stage]
        if self.pipeline_schedule is PipelineSchedule.Interleaved and self.training and len(set(flat)) != len(flat):
            raise NotImplementedError(
                "The pipelining schedule 'Interleaved' does not currently support multiple pipeline stages on the same "
                "device for training graphs. Use the schedule 'Grouped'."
            )
        if serialised and len(set(flat)) != 1:
            raise NotImplementedError(
                "When using batch serialization, all the pipeline stages need to be mapped to a single IPU. "
                f"`device_mapping` is {list(self.device_mapping)}. Map all stages to one IPU."
            )

    def _on_one_ipu(self) -> list[Any]:
        return [[0] * len(stage) if isinstance(stage, (list, tuple)) else 0 for stage in self.computational_stages]

    def _one_after_another(self) -> list[Any]:
        mapping: list[Any] = []
        following = 0
        for stage in self.computational_stages:
            concurrent = len(stage) if isinstance(stage, (list, tuple)) else 1
            ipus = list(range(following, following + concurrent))
            mapping.append(ipus if isinstance(stage, (list, tuple)) else ipus[0])
            following += concurrent
        return mapping

    @staticmethod
    def _check_stage(stage_index: int, stage: Any, ipus: Any) -> None:
        """A concurrent stage has an IPU for each of its functions, any other stage has one IPU."""
        concurrent = isinstance(stage, (list, tuple))
        if concurrent and not (stage and isinstance(ipus, (list, tuple)) and len(ipus) == len(stage)):
            raise ValueError(
                f"Each stage must be mapped to an IPU: the concurrent stage {stage_index} has {len(stage)} functions, "
                f"and its entry in device_mapping is {ipus!r}. Pass a list with an IPU for each function."
            )
        for function, ipu in zip(stage, ipus) if concurrent else [(stage, ipus)]:
            if not callable(function):
                raise TypeError(
                    f"computational_stages argument needs to be a list or a tuple of functions, but stage "
                    f"{stage_index} has {function!r}. Pass a list or a tuple."
                )
            if isinstance(ipu, bool) or not isinstance(ipu, (int, np.integer)) or ipu < ALL_IPUS:
                raise ValueError(
                    f"Each stage must be mapped to an IPU: the entry of stage {stage_index} in device_mapping is "
                    f"{ipus!r}. Pass the number of an IPU of the replica, or -1 for all IPUs."
                )

    def _check_switches(self) -> None:
        for name in _SWITCHES:
            booleans.check_boolean(name, getattr(self, name))
        if self.accumulate_outfeed is not AccumulatedOutfeed.LAST:
            booleans.check_boolean("accumulate_outfeed", self.accumulate_outfeed)
        if self.outfeed_mask is not None and not isinstance(self.outfeed_mask, (list, tuple)):
            raise TypeError(
                f"outfeed_mask must be a list or a tuple with True or False for each output, not {self.outfeed_mask!r}."
                " Pass a list or a tuple."
            )
        for masked in self.outfeed_mask or ():
            booleans.check_boolean("Each entry of outfeed_mask", masked)

    def _check_sharding(self) -> None:
        offload = self.offload_weight_update_variables
        if self.training and self.replicated_optimizer_state_sharding and offload is not None and not offload:
            raise ValueError(
                "To use replicated_optimizer_state_sharding, optimizer state must be offloaded: "
                "offload_weight_update_variables is False. Leave it out, or set it to True."
            )

    def _check_poplar_options(self) -> None:
        stages = len(self.computational_stages)
        for name in ("forward_propagation_stages_poplar_options", "backward_propagation_stages_poplar_options"):
            check_stage_options(name, getattr(self, name), stages)
        received = self.weight_update_poplar_options
        if self.training and received is not None and not isinstance(received, PipelineStageOptions):
            raise TypeError(
                "weight_update_poplar_options to be of type PipelineStageOptions, but "
                f"{type(received).__name__} was given; expected such an object. Pass one."
            )

    def _check_outfeed(self) -> None:
        for name in ("outfeed_mask", "outfeed_loss"):
            if getattr(self, name) and not self.training:
                raise ValueError(
                    f"An optimizer_function must be provided when {name} is used. Pass an optimizer_function, or leave "
                    "the argument out."
                )
        if self.outfeed_loss and self.outfeed_mask:
            raise ValueError("Only one of `outfeed_loss` and `outfeed_mask` can be set: both are. Leave one out.")
        if self.outfeed_mask and not all(self.outfeed_mask) and self.outfeed_queue is None:
            raise ValueError(
                f"The last computational stage has tensor outputs: outfeed_mask {list(self.outfeed_mask)} "
                "sends some of them, but no outfeed_queue has been provided; it needs one. Pass one, or mask "
                "all outputs."
            )
        if self.outfeed_loss and self.outfeed_queue is None:
            raise ValueError(
                "An outfeed_queue must be provided when outfeed_loss is True. Pass an outfeed_queue, or leave "
                "outfeed_loss out."
            )
        if self.accumulate_outfeed:
            if self.outfeed_queue is None:
                raise ValueError(
                    "An outfeed_queue must be provided when accumulate_outfeed is True. Pass an outfeed_queue, or "
                    "leave accumulate_outfeed out."
                )
            if self.outfeed_queue._mode is not IPUOutfeedMode.ALL:
                raise ValueError(
                    "To accumulate the outfeed, it must be in IPUOutfeedMode ALL: outfeed_queue has another "
                    "mode. Create it with outfeed_mode=IPUOutfeedMode.ALL."
                )


def check_stage_options(name: str, options: Any, stages: int) -> None:
    """Checks the options of the stages."""
    if options is None:
        return
    if not isinstance(options, (list, tuple)):
        raise TypeError(f"{name} must be a list or a tuple of PipelineStageOptions. Pass a list or a tuple.")
    if len(options) != stages:
        raise ValueError(
            f"{name} must be a list or a tuple of {stages} options, one a stage, not {len(options)}. Pass a list or a "
            "tuple."
        )
    for option in options:
        if not isinstance(option, PipelineStageOptions):
            raise TypeError(
                f"Expected all elements of {name} to be PipelineStageOptions, not {type(option).__name__}. Pass "
                "PipelineStageOptions only."
            )
