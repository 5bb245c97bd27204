"""The plugin's messages between the instances of a job, as Python sees them (`csrc/peers.h`)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

_WAIT_MILLISECONDS = 100  # Python looks after signals in between


class InstanceLinks:
    """What this process is connected to the others by.

    Args:
        c_library: the plugin.
        rank: of this process.
        sockets: for each process a connected socket, which is the plugin's from now on; -1 for this one.
        addresses: of the processes, for errors.
        seconds: how long to wait for another process.
    """

    def __init__(
        self, c_library: ctypes.CDLL, rank: int, sockets: Sequence[int], addresses: Sequence[str], seconds: float
    ) -> None:
        self._c = c_library
        self._rank, self._size = rank, len(sockets)
        _declare(c_library)
        self._peers = c_library.ipu_peers(
            rank,
            len(sockets),
            (ctypes.c_int32 * len(sockets))(*sockets),
            (ctypes.c_char_p * len(sockets))(*(address.encode() for address in addresses)),
            seconds,
        )

    def gather(self, name: str, title: str, message: bytes) -> tuple[list[bytes], str]:
        """Gives a message to the other processes, and takes theirs.

        Args:
            name: tells what belongs together.
            title: what errors say of it.
            message: what is given.

        Returns:
            What the others give, by rank, with nothing from this process; and what went wrong.
        """
        handing = self._c.ipu_hand_round(self._peers, name.encode(), title.encode(), message, len(message))
        try:
            while not self._c.ipu_is_handed_round(handing, _WAIT_MILLISECONDS):
                pass
            problem = self._given(handing, -1)
            if problem:
                return [], problem.decode()
            return [b"" if rank == self._rank else self._given(handing, rank) for rank in range(self._size)], ""
        finally:
            self._c.ipu_drop_handed(handing)

    def _given(self, handing: int, rank: int) -> bytes:
        size = ctypes.c_int64()
        found = self._c.ipu_handed_by(handing, rank, size)
        return ctypes.string_at(found, size.value) if found else b""

    def meet_in_programs(self, meet: bool) -> None:
        """Has the collectives of programs use these connections; or ask Python before the next."""
        self._c.ipu_peers_of_programs(self._peers if meet else None)

    def end(self) -> None:
        """Waits until what was given has left this process, for a second at most."""
        self._c.ipu_end_peers(self._peers)


def _declare(c_library: ctypes.CDLL) -> None:
    texts = ctypes.POINTER(ctypes.c_char_p)
    for name, result, arguments in (
        ("ipu_peers", ctypes.c_void_p, [ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int32), texts]),
        ("ipu_hand_round", ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_char_p] * 3, ctypes.c_int64]),
        ("ipu_is_handed_round", ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64]),
        ("ipu_handed_by", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]),
        ("ipu_drop_handed", None, [ctypes.c_void_p]),
        ("ipu_peers_of_programs", None, [ctypes.c_void_p]),
        ("ipu_end_peers", None, [ctypes.c_void_p]),
    ):
        function = getattr(c_library, name)
        function.restype, function.argtypes = result, arguments
    c_library.ipu_peers.argtypes = [*c_library.ipu_peers.argtypes, ctypes.c_double]
