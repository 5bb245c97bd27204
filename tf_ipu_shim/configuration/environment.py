"""Lists and checks this project's environment variables (`tf-ipu env`, `docs/reference/environment_variables.md`).

Each is read if it is needed; `tests/cli/test_environment.py` finds one that is read and not in this table.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
from collections.abc import Callable, Iterator

from tf_ipu_shim import sdk
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
    """Raises ValueError if the variable is set to something else."""
    setting = os.environ.get(name, "")
    if setting and setting.lower() not in values:
        expected = f"{', '.join(map(repr, values[:-1]))} or {values[-1]!r}"
        raise ValueError(f"{name} is {setting!r}; expected {expected}. Change it or unset it.")


SETTINGS = (
    Variable(
        name=sdk.ENVIRONMENT_VARIABLE,
        default="3.4, and names of all releases",
        meaning="the Poplar SDK that is emulated, 1.2 to 3.4",
        check=sdk.current,
    ),
    Variable(
        name=systems.ENVIRONMENT_VARIABLE,
        default=systems.DEFAULT,
        meaning="the simulated IPU system, such as pod4; `tf-ipu info -h` lists them",
        check=systems.current,
    ),
    Variable(
        name=execution_mode.ENVIRONMENT_VARIABLE,
        default=execution_mode.AUTO,
        meaning="how programs run on the host: xla, kernels or auto",
        check=execution_mode.requested_mode,
    ),
    Variable(
        name=execution_mode.CHECK_INDICES,
        default="0",
        meaning="1: an index or a label that is out of range is an error; programs run in mode kernels",
        check=execution_mode.checks_indices,
    ),
    Variable(
        name=checked_codelets.ENVIRONMENT_VARIABLE,
        default="0",
        meaning="1: `popc` compiles codelets that stop at an index beyond a vector's size",
        check=checked_codelets.is_on,
    ),
    Variable(
        name=activation.ENVIRONMENT_VARIABLE,
        default="graphcore",
        meaning=". ".join(f"`{name}`: {meaning}" for name, meaning in activation.MEANINGS.items()),
        check=activation.current,
    ),
    Variable(
        name=memory_setting.ENVIRONMENT_VARIABLE,
        default=memory_setting.ON,
        meaning="off: no memory figures, and nothing is refused for its memory; calls: reports have temporaries inside "
        "library calls, too",
        check=memory_setting.current,
    ),
    Variable(
        name=byte_text.ENVIRONMENT_VARIABLE,
        default="0",
        meaning="1: messages and reports have sizes with all digits, not in KiB, MiB and GiB",
        check=functools.partial(_one_of, byte_text.ENVIRONMENT_VARIABLE, "0", "1"),
    ),
    Variable(
        name=settings.DIRECTORY_VARIABLE,
        default="none",
        meaning="a directory for a profile of each program, also without engine options: `tf-ipu run --profile`",
    ),
    Variable(
        name="TF_IPU_SHIM_TRACEBACK",
        default="short",
        meaning="full: uncaught errors are shown with the frames of TensorFlow and tf_ipu_shim, and all that "
        "these repeat",
        check=functools.partial(_one_of, "TF_IPU_SHIM_TRACEBACK", "short", "full"),
    ),
    Variable(
        name=log_level.ENVIRONMENT_VARIABLE,
        default="TF_CPP_MIN_LOG_LEVEL",
        meaning="which log lines of the simulated driver are shown: 0 all, 1 no information, 2 only errors, 3 none",
        check=functools.partial(_one_of, log_level.ENVIRONMENT_VARIABLE, "0", "1", "2", "3"),
    ),
    Variable(
        name="TF_IPU_SHIM_DEBUG_DIR",
        default="none",
        meaning="a directory for the graphs of programs whose memory could not be modelled",
    ),
    Variable(
        name="TF_IPU_SHIM_PLUGIN_CACHE_DIR",
        default="the user's cache directory",
        meaning="the directory of the compiled plugin",
    ),
    Variable(
        name="TF_IPU_SHIM_LOCK_DIR",
        default="the temporary directory",
        meaning="the directory of the files that keep two processes from the same IPU",
    ),
    Variable(
        name=collective_timeout.ENVIRONMENT_VARIABLE,
        default=str(collective_timeout.DEFAULT_SECONDS),
        meaning="how long processes of a job, and replicas of a program, wait for each other, in seconds",
        check=collective_timeout.seconds,
    ),
    Variable(
        name="TF_IPU_SHIM_JOB_KEY",
        default="none",
        meaning="a secret of a job on several machines, by which its processes know each other",
    ),
)
"""The variables for users, the most common first."""
JOB_VARIABLES = (
    Variable(name="TF_IPU_SHIM_JOB", default="the launcher's", meaning="the name of a job of several processes"),
    Variable(
        name="TF_IPU_SHIM_RANK", default="the launcher's", meaning="the number of this process in its job, from 0"
    ),
    Variable(name="TF_IPU_SHIM_SIZE", default="the launcher's", meaning="how many processes the job has"),
    Variable(name="TF_IPU_SHIM_LOCAL_RANK", default="the launcher's", meaning="its number on its machine, from 0"),
    Variable(
        name="TF_IPU_SHIM_LOCAL_SIZE", default="the launcher's", meaning="how many processes of the job its machine has"
    ),
    Variable(
        name="TF_IPU_SHIM_FIRST_DEVICE",
        default="0",
        meaning="index of the first instance's device among those of its size; poprun sets it",
    ),
    Variable(
        name="TF_IPU_SHIM_ADDRESSES",
        default="found on this machine",
        meaning="host:port of each process of the job, by rank, separated by commas",
    ),
)
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
            near = difflib.get_close_matches(ending, known_names, n=1)
            hint = f"Did you mean {_PREFIX}{near[0]}?" if near else "Unset it; `tf-ipu env` lists the variables."
            yield ValueError(f"{name} is not a variable of tf_ipu_shim. {hint}")
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
