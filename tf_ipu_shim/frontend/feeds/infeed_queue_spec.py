"""The type spec of an infeed queue, which lets a function dequeue without the dataset."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class IPUInfeedQueueSpec:
    """The spec of an infeed queue; scripts and tests read it by these names.

    Args:
        _id: the name by which programs find the queue's iterator.
        _flat_structure: types and shapes of an element's tensors, `output_types` and `output_shapes`.
        _prefetch_depth: how many elements are ready ahead of time.
    """

    _id: str
    _structure: Any
    _flat_structure: dict[str, Any]
    _device_ordinal: int
    _prefetch_depth: int


def not_supported_error(label: str) -> RuntimeError:
    """Returns the error for a call that a queue with a spec and without a dataset cannot serve."""
    words = {"initializer": "should already be initialized", "deleter": "cannot be deleted"}[label]
    return RuntimeError(
        f"IPUInfeedQueue created from spec {words}: its dataset belongs to the queue that the spec is of. Use that "
        f"queue's `{label}`."
    )
