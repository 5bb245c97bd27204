"""What the processes of a job hand each other: messages over sockets of their own, apart from the script's graphs,
sessions and devices.

Python connects the processes; the plugin sends and takes the messages (`csrc/peers.h`), those of programs without
asking Python. What belongs together is told by a name and by how many of that name there were before, so that
operations may begin in any order.
"""

from __future__ import annotations

import atexit
import os

from tensorflow.python.framework import errors_impl

from tf_ipu_shim import plugin
from tf_ipu_shim.runtime import job, meeting_place, peer_sockets

SECONDS = "TF_IPU_SHIM_COLLECTIVE_SECONDS"
_DEFAULT_SECONDS = 600


class CollectiveError(errors_impl.UnknownError):
    """A collective operation that cannot complete: a process ended, or they do not agree on what is done."""

    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)


class Peers:
    """This process among those of its job.

    Args:
        here: the job.

    Raises:
        CollectiveError: the other processes are not found.
        ValueError: `TF_IPU_SHIM_COLLECTIVE_SECONDS` is no number of seconds.
    """

    def __init__(self, here: job.Job) -> None:
        seconds = _seconds()
        self._owner = os.getpid()
        self._rank = here.rank
        try:
            addresses = here.addresses or meeting_place.meet(here)
            sockets = peer_sockets.connect(
                peer_sockets.listen(addresses[here.rank]), here.rank, addresses, meeting_place.WAIT_SECONDS
            )
        except meeting_place.MeetingError as error:
            raise CollectiveError(str(error)) from error
        except peer_sockets.NotFoundError as error:
            raise CollectiveError(_not_found(error.ranks, addresses)) from error
        except OSError as error:
            raise CollectiveError(
                f"The process of rank {here.rank} cannot listen at {addresses[here.rank]}: another process of this job "
                f"has its rank, or another program the port. {error}"
            ) from error
        numbers = [-1 if one is None else one.detach() for one in sockets]
        self._links = plugin.load().connect_instances(here.rank, numbers, addresses, seconds)
        atexit.register(self._links.end)
        os.register_at_fork(after_in_child=lambda: _close(numbers))

    def gather(self, name: str, message: bytes, title: str = "") -> list[bytes]:
        """Gives a message to all processes, and takes theirs.

        Args:
            name: the same in every process; calls of one name follow each other.
            message: of any length.
            title: what errors say of it; the name when left out.

        Returns:
            What each process gave, by rank.

        Raises:
            CollectiveError: a process has ended, or one does not come in time.
        """
        if self._owner != os.getpid():
            raise CollectiveError("This process was forked from one of a job; that one is of the job.")
        given, problem = self._links.gather(name, title or name, message)
        if problem:
            raise CollectiveError(problem)
        given[self._rank] = message
        return given

    def meet_in_programs(self, meet: bool) -> None:
        """Says whether the collectives of programs meet without asking first (`collectives.join_programs`)."""
        self._links.meet_in_programs(meet)


def _not_found(ranks: list[int], addresses: tuple[str, ...]) -> str:
    each = ", ".join(f"rank {rank} was not found at {addresses[rank]}" for rank in ranks)
    return f"The process of {each} in {meeting_place.WAIT_SECONDS:g} s. Start all processes of the job."


def _close(sockets: list[int]) -> None:
    """A fork lets go of its parent's connections: the others are told at once when the parent ends."""
    for number in sockets:
        if number >= 0:
            os.close(number)


def _seconds() -> float:
    text = os.environ.get(SECONDS) or str(_DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{SECONDS} must be a number of seconds above 0; it is {text!r}.")
    return seconds
