"""The job that this process is a part of: several processes on this machine that run the same script.

`mpirun` (Open MPI), `mpiexec` (MPICH) and `poprun`, which starts the first, say so by environment variables;
`TF_IPU_SHIM_RANK` and `TF_IPU_SHIM_SIZE` come before theirs.
"""

from __future__ import annotations

import dataclasses
import os

from tf_ipu_shim import errors

_RANKS = ("TF_IPU_SHIM_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_SIZES = ("TF_IPU_SHIM_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_NAMES = ("TF_IPU_SHIM_JOB", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")


@dataclasses.dataclass(frozen=True)
class Job:
    """A set of processes.

    Args:
        name: tells it from other jobs of this user.
        rank: the number of this process, from 0.
        size: how many processes there are.
    """

    name: str
    rank: int
    size: int


def current() -> Job:
    """The job of this process: of one process where no launcher says otherwise.

    Raises:
        UnsupportedError: the processes are on several machines.
        ValueError: rank and size contradict each other.

    Example:
        >>> current().size
        1
    """
    rank, size = int(_first(_RANKS) or 0), int(_first(_SIZES) or 1)
    if not 0 <= rank < size:
        raise ValueError(f"The rank of a process must be from 0 to {size - 1}, but {rank} was given. Set {_RANKS[0]}.")
    local = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", size))
    if "TF_IPU_SHIM_SIZE" not in os.environ and local != size:
        raise errors.UnsupportedError(
            f"This job has {size} processes, {local} of them on this machine. Processes meet over sockets of one "
            "machine here: start them all on one."
        )
    return Job(_first(_NAMES) or str(os.getppid()), rank, size)


def _first(names: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
