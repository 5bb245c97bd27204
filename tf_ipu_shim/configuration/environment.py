"""The environment variables of this project's own: what `tf-ipu env` shows and `docs/options.md` lists.

Each is read where it is needed; `tests/config/test_environment.py` finds one that is read and not in this table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tf_ipu_shim import sdk
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import execution_mode, memory_setting
from tf_ipu_shim.profiling import settings


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variable:
    """One environment variable.

    Args:
        name: of the variable.
        default: what holds where it is not set, in words.
        what: what it changes.
        check: reads it as it is now, and raises `ValueError` or `NotImplementedError` where that makes no sense.
    """

    name: str
    default: str
    what: str
    check: Callable[[], object] | None = None


VARIABLES = (
    Variable(
        name=sdk.ENVIRONMENT_VARIABLE,
        default="3.4, and names of all releases",
        what="the Poplar SDK that is emulated, 1.2 to 3.4",
        check=sdk.current,
    ),
    Variable(
        name=systems.ENVIRONMENT_VARIABLE,
        default=systems.DEFAULT,
        what="the simulated machine, such as pod4; `tf-ipu info -h` lists them",
        check=systems.current,
    ),
    Variable(
        name=execution_mode.ENVIRONMENT_VARIABLE,
        default=execution_mode.AUTO,
        what="how programs run on the host: xla, kernels or auto",
        check=execution_mode.asked_for,
    ),
    Variable(
        name=activation.NAMES.variable,
        default=activation.NAMES.default,
        what=f"{activation.NAMES.default}: {activation.NAMES.meaning}; stock: {activation.NAMES.stock}",
        check=activation.NAMES.is_on,
    ),
    Variable(
        name=activation.OPTIMIZERS.variable,
        default=activation.OPTIMIZERS.default,
        what=f"{activation.OPTIMIZERS.default}: {activation.OPTIMIZERS.meaning}; stock: {activation.OPTIMIZERS.stock}",
        check=activation.OPTIMIZERS.is_on,
    ),
    Variable(
        name=memory_setting.ENVIRONMENT_VARIABLE,
        default=memory_setting.ON,
        what="off: no memory figures, and nothing is refused for its memory; calls: reports have temporaries inside "
        "library calls, too",
        check=memory_setting.current,
    ),
    Variable(
        name=settings.DIRECTORY_VARIABLE,
        default="none",
        what="a directory for a profile of each program, beside what engine options ask for: `tf-ipu run --profile`",
    ),
    Variable(
        name="TF_IPU_SHIM_TRACEBACK",
        default="short",
        what="full: uncaught errors are shown with the frames of TensorFlow and tf_ipu_shim, and all that these repeat",
    ),
    Variable(
        name="TF_IPU_SHIM_LOG_LEVEL",
        default="TF_CPP_MIN_LOG_LEVEL",
        what="which log lines of the simulated driver are shown: 0 all, 1 no information, 2 errors alone, 3 none",
    ),
    Variable(
        name="TF_IPU_SHIM_FAULTS",
        default="none",
        what="a directory for the graphs of programs whose memory could not be told",
    ),
    Variable(
        name="TF_IPU_SHIM_CACHE",
        default="the user's cache directory",
        what="the directory of the compiled plugin",
    ),
    Variable(
        name="TF_IPU_SHIM_LOCK_DIR",
        default="the temporary directory",
        what="the directory of the files that keep two processes from the same IPU",
    ),
    Variable(
        name="TF_IPU_SHIM_COLLECTIVE_SECONDS",
        default="600",
        what="how long processes of a job, and replicas of a program, wait for each other",
    ),
    Variable(name="TF_IPU_SHIM_JOB", default="the launcher's", what="the name of a job of several processes"),
    Variable(name="TF_IPU_SHIM_RANK", default="the launcher's", what="the number of this process in its job, from 0"),
    Variable(name="TF_IPU_SHIM_SIZE", default="the launcher's", what="how many processes the job has"),
    Variable(name="TF_IPU_SHIM_LOCAL_RANK", default="the launcher's", what="its number on its machine, from 0"),
    Variable(
        name="TF_IPU_SHIM_LOCAL_SIZE", default="the launcher's", what="how many processes of the job its machine has"
    ),
    Variable(
        name="TF_IPU_SHIM_FIRST_DEVICE",
        default="0",
        what="which of the devices of an instance's size the first instance has, as poprun tells it",
    ),
    Variable(
        name="TF_IPU_SHIM_ADDRESSES",
        default="found on this machine",
        what="host:port of each process of the job, by rank, separated by commas",
    ),
    Variable(
        name="TF_IPU_SHIM_JOB_KEY",
        default="none",
        what="a secret of the job over several machines, which its processes prove to each other that they know",
    ),
)
"""All of them, those that most users need first."""
