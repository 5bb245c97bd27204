"""Stores and validates a model's options for gradient accumulation, pipelining and feeds."""

from __future__ import annotations

import dataclasses
import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedQueue
from tf_ipu_shim.frontend.optimizers.gradient_accumulation_optimizer import check_options
from tf_ipu_shim.frontend.pipelines import pipelining_ops
from tf_ipu_shim.tf_private.utilities import tf_logging

_COUNT = "gradient_accumulation_count"
_INFEED_AUTOMATIC = ("dataset",)
_INFEED_INVALID = ("feed_name", "device_ordinal", "replication_factor")
_OUTFEED_INVALID = ("feed_name", "device_ordinal", "replication_factor", "outfeed_mode", "outfeed_all")
_PIPELINE_EXPLICIT = {
    _COUNT: "gradient_accumulation_steps_per_replica",
    "pipeline_depth": "gradient_accumulation_steps_per_replica",
    "device_mapping": "device_mapping",
    "accumulate_outfeed": "accumulate_outfeed",
    "reduction_method": "gradient_accumulation_reduction_method",
}
_PIPELINE_AUTOMATIC = (
    "computational_stages",
    "repeat_count",
    "inputs",
    "infeed_queue",
    "outfeed_queue",
    "optimizer_function",
    "outfeed_loss",
    "outfeed_mask",
)
_PIPELINE_INVALID = ("batch_serialization_iterations", "name", "continuous_weight_updates")
_NORMALISE = "experimental_normalize_gradients"
_REDUCTION_METHOD_SINCE = (2, 6)
# Of the accumulating optimizer. Where the real device keeps its state changes no result.
_ACCUMULATOR_OPTIONS = (
    "dtype",
    "offload_weight_update_variables",
    "replicated_optimizer_state_sharding",
    "name",
    "verify_usage",
)


@dataclasses.dataclass
class ModelOptions:
    """A model's IPU options. Fields are named as in Graphcore's setter methods."""

    accumulation_steps: int | None = None
    accumulation_reduction: Any = "sum"
    accumulation_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    use_v2_accumulation: bool = False
    pipelining_steps: int | None = None
    pipelining_reduction: Any = "sum"
    pipelining_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    device_mapping: list[int] | None = None
    accumulate_outfeed: bool | None = None
    infeed_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    outfeed_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    asynchronous_callbacks: bool = False
    metric_reduction: Any = "NONE"


def check_steps(steps: Any) -> int | None:
    """Checks the number of mini-batches to accumulate, and returns it."""
    if steps is None:
        return None
    if not _is_integer(steps) or steps < 1:
        raise ValueError(
            f"Expected `gradient_accumulation_steps_per_replica` to be a positive integer, but got {steps!r} instead."
            " Pass a positive integer."
        )
    return int(steps)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def checked_accumulation_kwargs(kwargs: Mapping[str, Any], steps: int | None) -> dict[str, Any]:
    """Returns the arguments of the accumulating optimizer, without a count where `steps` accumulates nothing."""
    name = "gradient_accumulation_optimizer_kwargs"
    if "opt" in kwargs:
        raise ValueError(
            f"Found `opt` key in `{name}`. This is not supported: the optimizer which the model has been compiled with "
            "is used. Remove `opt`."
        )
    if "num_mini_batches" in kwargs:
        raise ValueError(
            f"Found `num_mini_batches` key in `{name}`. Set the `gradient_accumulation_steps_per_replica` argument of "
            "`set_gradient_accumulation_options` instead."
        )
    _check_no_normalise(kwargs, "set_gradient_accumulation_options")
    if _COUNT in kwargs and steps in (None, 1):
        # A published program passes it. Graphcore's TensorFlow reads these arguments if gradients are accumulated.
        tf_logging.warning(
            f"set_gradient_accumulation_options has no argument `{_COUNT}`: the model accumulates no gradients. Pass "
            "`gradient_accumulation_steps_per_replica` to accumulate them."
        )
        kwargs = {key: value for key, value in kwargs.items() if key != _COUNT}
    for key in kwargs:
        if key not in _ACCUMULATOR_OPTIONS:
            raise TypeError(
                f"The gradient accumulation optimizer takes no argument {key!r}; expected one of "
                f"{', '.join(_ACCUMULATOR_OPTIONS)}. Remove it, or correct its name."
            )
    check_options(1, kwargs.get("offload_weight_update_variables"), kwargs.get("replicated_optimizer_state_sharding"))
    return dict(kwargs)


def check_device_mapping(mapping: Any) -> list[int] | None:
    """Returns the IPU of each stage."""
    if mapping is None:
        return None
    if not isinstance(mapping, list) or not all(_is_integer(ipu) for ipu in mapping):
        raise ValueError(
            f"Expected `device_mapping` to be a list of integers, but got {mapping!r} instead. Pass a list of integers."
        )
    return [int(ipu) for ipu in mapping]


def check_pipelining_kwargs(kwargs: Any) -> None:
    """Checks the arguments of the pipeline."""
    if not isinstance(kwargs, Mapping):
        raise TypeError(f"`pipelining_kwargs` must be a dictionary, not {type(kwargs).__name__}. Pass a dictionary.")
    for key, argument in _PIPELINE_EXPLICIT.items():
        if key in kwargs:
            raise ValueError(
                f"Found `{key}` key in `pipelining_kwargs`. Set the `{argument}` argument to `set_pipelining_options` "
                "instead."
            )
    _check_no_keys(kwargs, "pipelining_kwargs", _PIPELINE_AUTOMATIC, _PIPELINE_INVALID)
    _check_no_normalise(kwargs, "set_pipelining_options")
    _check_known_keys(
        kwargs, "The pipeline", pipelining_ops.pipeline, {*_PIPELINE_EXPLICIT, *_PIPELINE_AUTOMATIC, *_PIPELINE_INVALID}
    )


def check_infeed_kwargs(kwargs: Mapping[str, Any]) -> None:
    """Checks the arguments of the infeed."""
    _check_no_keys(kwargs, "kwargs", _INFEED_AUTOMATIC, _INFEED_INVALID)
    _check_known_keys(kwargs, "The infeed", IPUInfeedQueue, {*_INFEED_AUTOMATIC, *_INFEED_INVALID}, "data_to_prefetch")


def check_outfeed_kwargs(kwargs: Mapping[str, Any]) -> None:
    """Checks the arguments of the outfeed."""
    _check_no_keys(kwargs, "kwargs", (), _OUTFEED_INVALID)
    _check_known_keys(kwargs, "The outfeed", IPUOutfeedQueue, _OUTFEED_INVALID, "io_batch_size")


def _check_no_keys(kwargs: Mapping[str, Any], where: str, automatic: Sequence[str], invalid: Sequence[str]) -> None:
    for key in automatic:
        if key in kwargs:
            raise ValueError(
                f"Found `{key}` key in `{where}`. This argument is automatically set by Keras and must "
                "not be passed. Remove it."
            )
    for key in invalid:
        if key in kwargs:
            raise ValueError(
                f"Found `{key}` key in `{where}`. This argument is not compatible with Keras models. Remove the key."
            )


def _check_known_keys(
    kwargs: Mapping[str, Any], label: str, function: Callable[..., Any], refused: Iterable[str], *older: str
) -> None:
    """Refuses keys that a function does not accept."""
    parameters = inspect.signature(function).parameters.values()
    names = [
        parameter.name
        for parameter in parameters
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name not in refused
    ]
    for key in kwargs:
        if key not in (*names, *older):
            raise TypeError(
                f"{label} takes no argument {key!r}; expected one of {', '.join(names)}. Remove it, or correct its "
                "name."
            )


def reduction_from_normalise(kwargs: dict[str, Any], reduction: Any) -> Any:
    """Returns the reduction method for the normalisation flag of scripts for SDK 2.5 or older."""
    if sdk.current() >= _REDUCTION_METHOD_SINCE or _NORMALISE not in kwargs:
        return reduction
    return "mean" if kwargs.pop(_NORMALISE) else reduction


def _check_no_normalise(kwargs: Mapping[str, Any], where: str) -> None:
    if _NORMALISE in kwargs:
        raise ValueError(
            f"Found `{_NORMALISE}` argument to `{where}`. This argument has been removed: set "
            "`gradient_accumulation_reduction_method` to 'mean' instead."
        )
