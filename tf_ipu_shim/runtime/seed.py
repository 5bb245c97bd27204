"""Holds the random seeds of devices.

Each TensorFlow device has one state: the seed last set, how often it was set (`generation`), and whether replicas are
to draw the same numbers. It outlives configurations. The plugin draws the seed of each run of a compiled program
(`random_seed_op.cc`). If the device's seed was never set, the seeds of the script's ops count, else the operating
system's entropy. Ops that run uncompiled draw as TensorFlow's CPU ops do.
"""

from __future__ import annotations

import dataclasses
import threading

from tf_ipu_shim.runtime import devices

_lock = threading.Lock()
_states: dict[int, SeedState] = {}


@dataclasses.dataclass(frozen=True)
class SeedState:
    """The seed of one device.

    Args:
        seed: the seed that was set; None if none was.
        generation: how many times it was set.
        identical_replicas: whether replicas draw the same numbers.
    """

    seed: int | None = None
    generation: int = 0
    identical_replicas: bool = False


def reset(ordinal: int, seed: int, identical_replicas: bool = False) -> None:
    """Sets a device's seed, which determines its later random numbers."""
    with _lock:
        devices.load_library().set_seed(ordinal, seed, identical_replicas)
        _states[ordinal] = SeedState(seed, state_of(ordinal).generation + 1, identical_replicas)


def state_of(ordinal: int) -> SeedState:
    """Returns a device's seed and how it was set."""
    return _states.get(ordinal, SeedState())
