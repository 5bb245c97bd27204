"""Traces a model's program once, in the first thread that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import entered_stages
from tf_ipu_shim.frontend.keras.training import locks


class TracedProgram:
    """A compiled program of a model.

    Args:
        function: a `tf.function` without arguments and results.
        check: called once with the traced function, and how many pipeline stages had been entered before the trace.
        forget: called if the trace or the check fails.
    """

    def __init__(self, function: Any, check: Callable[[Any, int], None], forget: Callable[[], Any]) -> None:
        self.function = function
        self._check = check
        self._forget = forget
        self._concrete: Any = None
        self.written: list[str] | None = None  # names of variables that it writes, once somebody has asked

    def trace(self) -> Any:
        """Returns the function as it was traced."""
        if self._concrete is None:
            with locks.build_lock.hold():
                if self._concrete is None:
                    self._concrete = self._traced()
        return self._concrete

    def __call__(self) -> None:
        """Runs once."""
        self.trace()
        self.function()

    def _traced(self) -> Any:
        before = entered_stages()
        try:
            concrete = self.function.get_concrete_function()
            self._check(concrete, before)
        except BaseException:
            self._forget()
            raise
        return concrete
