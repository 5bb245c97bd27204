"""Lists and checks this project's environment variables (`tf-ipu env`, `docs/reference/environment_variables.md`).

Each is read if it is needed; `tests/cli/test_environment.py` finds one that is read and not in this table.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator

from tf_ipu_shim import data_files, sdk, spelling
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import (
    checked_codelets,
    collective_timeout,
    execution_mode,
    log_level,
    memory_setting,
)
from tf_ipu_shim.machine.memory import byte_text
from tf_ipu_shim.profiling import settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variable:
    """One environment variable.

    Args:
        default: the default, in words.
        check: reads its current value, and raises `ValueError` or `NotImplementedError` if that is invalid.
    """

    name: str
    default: str
    meaning: str
    check: Callable[[], object] | None = None


def _one_of(name: str, *values: str) -> None:
    """Raises ValueError if the variable is set to another value."""
    setting = os.environ.get(name, "")
    if setting and setting.lower() not in values:
        expected = f"{', '.join(map(repr, values[:-1]))} or {values[-1]!r}"
        raise ValueError(f"{name} is {setting!r}; expected {expected}. Change it or unset it.")


_CHECKS: dict[str, Callable[[], object]] = {
    sdk.ENVIRONMENT_VARIABLE: sdk.current,
    systems.ENVIRONMENT_VARIABLE: systems.current,
    execution_mode.ENVIRONMENT_VARIABLE: execution_mode.requested_mode,
    execution_mode.CHECK_INDICES: execution_mode.checks_indices,
    checked_codelets.ENVIRONMENT_VARIABLE: checked_codelets.is_on,
    activation.ENVIRONMENT_VARIABLE: activation.current,
    memory_setting.ENVIRONMENT_VARIABLE: memory_setting.current,
    byte_text.ENVIRONMENT_VARIABLE: functools.partial(_one_of, byte_text.ENVIRONMENT_VARIABLE, "0", "1"),
    "TF_IPU_SHIM_TRACEBACK": functools.partial(_one_of, "TF_IPU_SHIM_TRACEBACK", "short", "full"),
    log_level.ENVIRONMENT_VARIABLE: functools.partial(_one_of, log_level.ENVIRONMENT_VARIABLE, "0", "1", "2", "3"),
    collective_timeout.ENVIRONMENT_VARIABLE: collective_timeout.seconds,
}
_DEFINED_ELSEWHERE = {
    "compatibility": ". ".join(f"`{name}`: {meaning}" for name, meaning in activation.MEANINGS.items()),
    "seconds": collective_timeout.DEFAULT_SECONDS,
    "system": systems.DEFAULT,
}


def _variables(kind: str) -> tuple[Variable, ...]:
    return tuple(
        Variable(
            name=row["variable"],
            default=row["default"].format_map(_DEFINED_ELSEWHERE),
            meaning=row["meaning"].format_map(_DEFINED_ELSEWHERE),
            check=_CHECKS.get(row["variable"]),
        )
        for row in data_files.rows(__file__, "environment.csv")
        if row["kind"] == kind
    )


SETTINGS = _variables("setting")
"""The variables for users, the most common first."""
JOB_VARIABLES = _variables("job")
"""Set by `poprun` for the processes of a job; set by hand only if another launcher starts them."""
VARIABLES = (*SETTINGS, *JOB_VARIABLES)
RENAMED = {
    f"TF_IPU_SHIM_{old}": new
    for old, new in {
        "CACHE": "TF_IPU_SHIM_PLUGIN_CACHE_DIR",
        "COLLECTIVE_SECONDS": collective_timeout.ENVIRONMENT_VARIABLE,
        "ERA": activation.ENVIRONMENT_VARIABLE,
        "EXECUTION": execution_mode.ENVIRONMENT_VARIABLE,
        "FAULTS": "TF_IPU_SHIM_DEBUG_DIR",
        "KERAS_OPTIMIZERS": f"{activation.ENVIRONMENT_VARIABLE}=stock-optimizers",
        "MEMORY": memory_setting.ENVIRONMENT_VARIABLE,
        "PROFILE": settings.DIRECTORY_VARIABLE,
    }.items()
}
"""Earlier names, each with the one that took its place."""
_PREFIX = "TF_IPU_SHIM_"


def problems() -> Iterator[Exception]:
    """Yields an error for each variable with our prefix that is unknown, renamed or has a value that is not known."""
    known_names = [variable.name.removeprefix(_PREFIX) for variable in VARIABLES]
    for name in sorted(os.environ):
        if name in RENAMED:
            yield ValueError(f"{name} is now {RENAMED[name]}. Set that instead.")
        elif name.startswith(_PREFIX) and (ending := name.removeprefix(_PREFIX)) not in known_names:
            hint = spelling.did_you_mean(ending, known_names, _PREFIX + "{}")
            hint = hint or " Unset it; `tf-ipu env` lists the variables."
            yield ValueError(f"{name} is not a variable of tf_ipu_shim.{hint}")
    for variable in VARIABLES:
        try:
            if variable.check:
                variable.check()
        except (ValueError, NotImplementedError) as error:
            yield error


def check() -> None:
    """Raises the first of the `problems`, if any.

    Example:
        >>> check()
    """
    for problem in problems():
        raise problem
