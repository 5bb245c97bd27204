"""`tensorflow.python.ipu.distributed.basics`: rank and size of a job's processes, as in Horovod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.runtime.jobs import job


class HorovodBasics:
    """The processes of a job.

    Args:
        library_path: the path of Horovod's library. No effect.

    Source: `tensorflow.python.ipu.distributed.basics.HorovodBasics`.

    Example:
        >>> basics = HorovodBasics()
        >>> basics.init()
        >>> basics.size()
        1
    """

    Average = 0
    Sum = 1
    Adasum = 2

    def __init__(self, library_path: Any = None) -> None:
        note_arguments("HorovodBasics", library_path=library_path)
        self._job: job.Job | None = None

    def init(self, comm: Sequence[int] | None = None) -> None:
        """Joins the job.

        Args:
            comm: the ranks that participate; all by default.

        Raises:
            UnsupportedError: `comm` has only some of the ranks.
        """
        current_job = job.current()
        if comm is not None and (
            not isinstance(comm, (list, tuple)) or list(comm) not in ([], list(range(current_job.size)))
        ):
            raise errors.UnsupportedError(
                f"init(comm={comm!r}) would leave out some of the {current_job.size} processes; all must take "
                "part. Start only as many as are needed, and call init() without comm."
            )
        self._job = current_job

    def shutdown(self) -> None:
        """Leaves the job."""
        self._job = None

    def rank(self) -> int:
        """Returns the number of this process, from 0."""
        return self._joined().rank

    def size(self) -> int:
        """Returns the number of processes."""
        return self._joined().size

    def local_rank(self) -> int:
        """Returns the number of this process on its machine, from 0."""
        return self._joined().local_rank

    def local_size(self) -> int:
        """Returns the number of processes on this machine."""
        return self._joined().local_size

    def is_homogeneous(self) -> bool:
        """Returns whether the number of all processes is a multiple of those on this machine."""
        return self._joined().size % self._joined().local_size == 0

    def mpi_threads_supported(self) -> bool:
        """Returns whether operations may be called from several threads."""
        return self._joined().size > 0

    def mpi_enabled(self) -> bool:
        """Returns whether processes are numbered as an MPI launcher does."""
        return True

    def mpi_built(self) -> bool:
        """Returns True, as in Graphcore's library, which only supports MPI."""
        return True

    def gloo_enabled(self) -> bool:
        """Returns whether Gloo is used; Graphcore's library is built without."""
        return False

    def gloo_built(self) -> bool:
        """Returns whether the library supports Gloo; Graphcore's does not."""
        return False

    def nccl_built(self) -> bool:
        """Returns whether the library supports NCCL, which is for GPUs."""
        return False

    def ddl_built(self) -> bool:
        """Returns whether the library supports DDL, which is for GPUs."""
        return False

    def mlsl_built(self) -> bool:
        """Returns whether the library supports MLSL; Graphcore's does not."""
        return False

    def _joined(self) -> job.Job:
        if self._job is None:
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        return self._job
