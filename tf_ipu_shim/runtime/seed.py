"""Seeds of the random numbers that devices draw.

Each TensorFlow device has one state: the seed last set, how often it was set (`generation`), and whether replicas are
to draw the same numbers. It outlives configurations. The lowering asks `draw` for the seeds of each run of a program
that is random, one for each replica; a device whose seed was never set takes one from the operating system.
"""

from __future__ import annotations

import dataclasses
import random
import threading

_lock = threading.Lock()
_states: dict[int, SeedState] = {}
_generators: dict[int, random.Random] = {}


@dataclasses.dataclass(frozen=True)
class SeedState:
    """The seed of one device.

    Args:
        seed: as it was set; None if it never was.
        generation: how many times it was set.
        identical_replicas: whether replicas draw the same numbers.
    """

    seed: int | None = None
    generation: int = 0
    identical_replicas: bool = False


def reset(ordinal: int, seed: int, identical_replicas: bool = False) -> None:
    """Sets the seed of `/device:IPU:<ordinal>`; what it draws from now on follows from it.

    Args:
        ordinal: the TensorFlow device.
        seed: any integer.
        identical_replicas: whether all replicas draw the same numbers.
    """
    with _lock:
        _states[ordinal] = SeedState(seed, state_of(ordinal).generation + 1, identical_replicas)
        _generators[ordinal] = random.Random(seed)


def state_of(ordinal: int) -> SeedState:
    """The seed of a device, and how it was set."""
    return _states.get(ordinal, SeedState())


def draw(ordinal: int, replicas: int = 1) -> list[tuple[int, int]]:
    """The seeds for one run of a random program; every call gives new ones.

    Args:
        ordinal: the TensorFlow device.
        replicas: how many replicas run.

    Returns:
        For each replica, two signed 32-bit integers, as TensorFlow's stateless random ops take them.

    Example:
        >>> reset(0, 42)
        >>> first = draw(0, 2)
        >>> reset(0, 42)
        >>> draw(0, 2) == first
        True
    """
    with _lock:
        generator = _generators.setdefault(ordinal, random.Random())
        drawn = 1 if state_of(ordinal).identical_replicas else replicas
        seeds = [(_int32(generator), _int32(generator)) for _ in range(drawn)]
    return seeds if drawn == replicas else seeds * replicas


def _int32(generator: random.Random) -> int:
    return generator.getrandbits(32) - (1 << 31)
