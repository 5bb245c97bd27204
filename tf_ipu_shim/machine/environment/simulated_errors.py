"""Reads the hardware error that `GCDA_OPTIONS` simulates."""

from __future__ import annotations

import dataclasses
import os

from tf_ipu_shim.machine.environment import engine_options

ENVIRONMENT_VARIABLE = "GCDA_OPTIONS"
ERRORS = ("IPUSOFTERR",)
"""The errors that can be simulated."""

_EXAMPLE = '{"simulateSOCError.errorList": "IPUSOFTERR"}'
_LIST, _COUNT, _REARM = (f"simulateSOCError.{name}" for name in ("errorList", "triggerCount", "rearmOnReset"))


@dataclasses.dataclass(frozen=True)
class SimulatedError:
    """A hardware error that devices report when they load a program.

    Args:
        name: the error, one of `ERRORS`.
        loads: how many loads fail.
        rearmed: whether each reset starts the count again, so that all loads fail.
    """

    name: str
    loads: int = 1
    rearmed: bool = False

    def comes(self, failed: int) -> bool:
        """Returns whether the next load fails, after `failed` have.

        Example:
            >>> SimulatedError("IPUSOFTERR", loads=2).comes(1), SimulatedError("IPUSOFTERR").comes(1)
            (True, False)
        """
        return self.rearmed or failed < self.loads

    def text(self, device: str) -> str:
        """Returns the message of a device's failure, in Graphcore's form."""
        return (
            f"[Poplar][Load engine] recoverable_runtime_error: [Recovery action: IPU_RESET] CIUERRVR.{self.name} error "
            f"on IPU 0 of {device}. {ENVIRONMENT_VARIABLE} simulates it: unset {_LIST} to run without. The IPU will be "
            "reset the next time a program is executed."
        )


def current() -> SimulatedError | None:
    """Returns the error that the environment asks for.

    Source: docs/reference/facts.md, section "GCDA_OPTIONS".

    Example:
        >>> current() is None
        True
    """
    options = _options()
    name = options.get(_LIST, "")
    if not name:
        return None
    if name not in ERRORS:
        raise ValueError(
            f"{_LIST} of {ENVIRONMENT_VARIABLE} is {name!r}; expected {ERRORS[0]!r}. Set it so, or leave it out."
        )
    count = options.get(_COUNT, "1")
    if not count.isdecimal():
        raise ValueError(
            f"{_COUNT} of {ENVIRONMENT_VARIABLE} is {count!r}; expected the number of failing loads. Write a number."
        )
    return SimulatedError(name, int(count), engine_options.is_enabled(options, _REARM))


def without_effect() -> dict[str, str]:
    """Returns the options of `GCDA_OPTIONS` that have no effect."""
    return {name: value for name, value in _options().items() if name not in (_LIST, _COUNT, _REARM)}


def _options() -> dict[str, str]:
    return engine_options.parse(os.environ.get(ENVIRONMENT_VARIABLE, ""), ENVIRONMENT_VARIABLE, _EXAMPLE)
