"""Partitions layers into consecutive parts, by their memory or by their work within a memory limit."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

_Layer = TypeVar("_Layer")
_Added = TypeVar("_Added", contravariant=True)


class PartMemory(Protocol[_Added]):
    """The memory of a part to which layers are added in order; can be copied."""

    def add(self, layer: _Added, /) -> None:
        """Adds the next layer."""

    @property
    def bytes(self) -> float:
        """The bytes that the part needs with its layers."""


def bytes_of(layers: Iterable[_Layer], empty: PartMemory[_Layer]) -> float:
    """Returns the bytes of layers as one part."""
    memory = copy.copy(empty)
    for layer in layers:
        memory.add(layer)
    return memory.bytes


def smallest_parts(
    layers: Sequence[_Layer], memories: Sequence[PartMemory[_Layer]], largest: PartMemory[_Layer], tolerance: float
) -> tuple[list[int], float] | None:
    """Returns a split into parts that minimizes the largest part's memory, and that memory; None with too few layers.

    Parts are filled in order, which is optimal if all layers are equal.
    """
    if len(layers) < len(memories):
        return None
    low, high = 0.0, float(bytes_of(layers, largest))
    while high - low > max(1.0, tolerance * high):
        middle = (low + high) / 2
        low, high = (low, middle) if _fill(layers, memories, middle) else (middle, high)
    begins = _fill(layers, memories, high)
    return None if begins is None else (begins, high)


def _fill(layers: Sequence[_Layer], memories: Sequence[PartMemory[_Layer]], limit: float) -> list[int] | None:
    """Returns the beginnings of parts if none may exceed a limit, or None if that needs more parts."""
    begins, part = [0], copy.copy(memories[0])
    for index, layer in enumerate(layers):
        remaining_parts = len(memories) - len(begins)  # parts that have to begin yet
        tried = copy.copy(part)
        tried.add(layer)
        if index > begins[-1] and (tried.bytes > limit or len(layers) - index == remaining_parts):
            if not remaining_parts:
                return None
            begins.append(index)
            tried = copy.copy(memories[len(begins) - 1])
            tried.add(layer)
        part = tried
        if part.bytes > limit:
            return None
    return begins


def balanced_parts(
    layers: Sequence[_Layer],
    memories: Sequence[PartMemory[_Layer]],
    limit: float,
    work: Callable[[int, int], float],
    copies: Callable[[int, int, int], float],
) -> list[int] | None:
    """Returns a split into parts that minimizes the busiest part's work, and the end; None if none fits.

    Dynamic programming over leading layers and parts.

    Args:
        work: of a part, for one layer.
        copies: of a part, for the layers from the first one to before the last: they depend on all of them.
    """
    total = len(layers)
    least = [0.0, *[math.inf] * total]  # the work of the busiest part, by the number of layers
    begins: list[list[int]] = []  # of the last part, by part and number of layers
    for part, empty in enumerate(memories):
        before, least, begin = least, [math.inf] * (total + 1), [0] * (total + 1)
        for first in range(part, total):
            done, memory = 0.0, copy.copy(empty)
            for end in range(first + 1, total + 1):
                done += work(part, end - 1)
                memory.add(layers[end - 1])
                if memory.bytes > limit:
                    break
                longest = max(before[first], done + copies(part, first, end))
                if longest < least[end]:
                    least[end], begin[end] = longest, first
        begins.append(begin)
    if least[total] == math.inf:
        return None
    cuts = [total]
    for begin in reversed(begins):
        cuts.append(begin[cuts[-1]])
    return cuts[::-1]
