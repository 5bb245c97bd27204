"""A study of a script's programs: what `tf-ipu fit` collects while the script runs, and nothing of it computes.

While there is one, programs are compiled and not run, as under `DeviceConnectionType.PRE_COMPILE`, whatever the script
configures; none is refused for its memory, and each is kept with all that it was planned of.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping

from tf_ipu_shim.machine.memory import Block, MemoryPlan


@dataclasses.dataclass(frozen=True)
class Studied:
    """One program.

    Args:
        name: as a person calls it.
        plan: its memory on the chip that it was lowered for.
        blocks: what each IPU of the first replica runs, on any chip.
        ipus: of the TensorFlow device.
        replicas: of the program.
        steps: how many elements each replica takes from its infeed in a run; 1 where it takes none.
        items: how many samples all replicas take in a run, by the first axis of what they are fed; 0 where they are fed
            nothing that has one.
        is_keras: whether a Keras model has made it.
        recomputes: whether its configuration asks for recomputation.
    """

    name: str
    plan: MemoryPlan
    blocks: Mapping[int, Block]
    ipus: int
    replicas: int
    steps: float
    items: float
    is_keras: bool = False
    recomputes: bool = False


_lock = threading.Lock()
_programs: list[Studied] | None = None


def begin() -> None:
    """Begins a study; programs of an earlier one are forgotten."""
    global _programs
    with _lock:
        _programs = []


def active() -> bool:
    """Whether there is a study now."""
    return _programs is not None


def add(program: Studied) -> None:
    """Keeps a program, if there is a study."""
    with _lock:
        if _programs is not None:
            _programs.append(program)


def end() -> list[Studied]:
    """Ends the study; its programs in the order in which they were lowered."""
    global _programs
    with _lock:
        found, _programs = _programs or [], None
    return found
