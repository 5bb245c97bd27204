"""Captures a script's programs for `tf-ipu fit` in a dry run, which computes nothing.

Programs are compiled but not run, as under `DeviceConnectionType.PRE_COMPILE`, even if the script configures another
type. None is refused for its memory, and each is kept with the inputs of its plan.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping

from tf_ipu_shim.machine.memory import Block, MemoryPlan


@dataclasses.dataclass(frozen=True)
class CapturedProgram:
    """One captured program.

    Args:
        plan: its memory on the chip that it was lowered for.
        blocks: the program of each IPU of the first replica, on any chip.
        steps: how many elements each replica dequeues from its infeed in a run; 1 if it dequeues none.
        items: number of samples that all replicas consume in a run, by the first axis of their inputs; 0 without inputs
            that have one.
        is_keras: whether a Keras model has made it.
        recomputes: whether its configuration asks for recomputation.
        remote_state_bytes: optimizer variables of at least this size would be in remote memory in a pipeline;
            None without remote memory.
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
    remote_state_bytes: int | None = None


_lock = threading.Lock()
_programs: list[CapturedProgram] | None = None


def begin() -> None:
    """Begins a capture; forgets programs of an earlier one."""
    global _programs
    with _lock:
        _programs = []


def active() -> bool:
    """Returns whether programs are being captured."""
    return _programs is not None


def add(program: CapturedProgram) -> None:
    """Captures a program if a capture is active."""
    with _lock:
        if _programs is not None:
            _programs.append(program)


def end() -> list[CapturedProgram]:
    """Ends the capture; returns its programs in lowering order."""
    global _programs
    with _lock:
        captured, _programs = _programs or [], None
    return captured
