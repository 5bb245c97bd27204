"""Checks the arguments of the `ipu.keras` models of SDK 1.2 to 2.1, and refuses SDKs that deleted these models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_ipu_shim import sdk

_DELETED_IN, _GONE_IN = (2, 2), (2, 6)
KERAS_FIT = (
    "validation_split",
    "validation_data",
    "validation_steps",
    "validation_batch_size",
    "validation_freq",
    "class_weight",
    "sample_weight",
    "max_queue_size",
    "workers",
    "use_multiprocessing",
)
KERAS_COMPILE = ("sample_weight_mode", "weighted_metrics", "target_tensors")


def refuse_deleted(name: str, stock: str) -> None:
    """Refuses to make a model under an SDK that deleted its class.

    SDK 2.6 and newer have no such name at all; scripts for the old models run there too, because the name has no other
    meaning.
    """
    if _DELETED_IN <= sdk.current() < _GONE_IN:
        raise RuntimeError(
            f"{name} has been deleted. Use tf.keras.{stock} within an IPUStrategy scope instead, or emulate SDK "
            "2.1, the last one to support it (TF_IPU_SHIM_SDK=2.1)."
        )


def chosen_count(name: str, given_count: Any, older: Mapping[str, Any]) -> int:
    """Returns the number of mini-batches for each update, by whichever name a script calls it."""
    given_counts = {key: value for key, value in older.items() if value is not None}
    if given_count is not None:
        given_counts["gradient_accumulation_count"] = given_count
    if not given_counts:
        raise TypeError(
            f"{name} is missing the argument 'gradient_accumulation_count', which it needs. Pass a "
            "number of mini-batches."
        )
    if len(set(given_counts.values())) > 1:
        raise ValueError(
            f"{name} got several numbers of mini-batches: {given_counts}; expected one. Leave the others out."
        )
    count = next(iter(given_counts.values()))
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"{name}: gradient_accumulation_count must be an integer, not {count!r}. Pass an integer.")
    if count < 1:
        raise ValueError(f"{name}: gradient_accumulation_count must be at least 1, not {count}. Pass at least 1.")
    return int(count)


def remember(model: Any, **values: Any) -> None:
    """Sets attributes of a model that are not part of its layers: Keras would track lists among them."""
    for name, value in values.items():
        object.__setattr__(model, name, value)


def refuse_keras(kwargs: Mapping[str, Any], accepted: tuple[str, ...], method: str) -> None:
    """Refuses arguments of Keras that old models do not have."""
    for key, value in kwargs.items():
        if key not in accepted:
            if method == "compile":
                continue
            raise TypeError(
                f"{method}() got an unexpected keyword argument {key!r}; expected "
                "those of Graphcore's method. Remove it."
            )
        if value:
            raise NotImplementedError(
                f"IPU Keras models do not support the `{key}` argument of `{method}`. Leave it out."
            )
