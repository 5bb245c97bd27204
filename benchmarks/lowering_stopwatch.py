"""How long the lowering of programs takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class LoweredOnly(Exception):
    """Ends a first run before XLA compiles, which takes minutes for large graphs."""


class Stopwatch:
    """Measures the time that the plugin spends in the lowering.

    Args:
        repeats: how often to lower each program.
        runs: whether programs run afterwards.

    Attributes:
        runs: as given; may be changed.
        alone: the processor time in seconds that each lowering of the last program took.
        whole: the same with the memory plan, with parsing and serialising; of all threads.
        total: the seconds of `whole` on the clock, of all programs.
    """

    def __init__(self, repeats: int, runs: bool = False) -> None:
        from tf_ipu_shim import plugin
        from tf_ipu_shim.driver import planned_program, registration
        from tf_ipu_shim.runtime import devices

        self._library = plugin.load()
        self._repeats = repeats
        self.runs = runs
        self.alone: list[float] = []
        self.whole: list[float] = []
        self.total = 0.0
        lower = planned_program.lower

        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.thread_time()
            program = lower(*arguments, **options)
            self.alone.append(time.thread_time() - start)
            return program

        planned_program.lower = timed
        registration.register_lowering(self, devices.get)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def set_lowering(self, lower: Callable[[Any, bytes], bytes]) -> None:
        """Stands for the plugin in front of the lowering."""

        def timed(call: Any, request: bytes) -> bytes:
            self.alone, self.whole = [], []
            for _ in range(self._repeats):
                clock, start = time.perf_counter(), time.process_time()
                answer = lower(call, request)
                self.whole.append(time.process_time() - start)
                self.total += time.perf_counter() - clock
            if not self.runs:
                raise LoweredOnly
            return answer

        self._library.set_lowering(timed)
