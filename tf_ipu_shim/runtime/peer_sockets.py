"""The connections between the processes of a job: a socket between every two of them.

Each listens at its address and connects to those of lower ranks. Both sides say what job they are of and which rank
they have, so that whoever else comes to the port is sent away.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import struct
import time
from collections.abc import Sequence

_POLL_SECONDS = 0.05
_HELLO_SECONDS = 5
_HELLO = struct.Struct("<32sI")
_LOOPBACK = ("127.", "localhost", "[::1]", "::1")


class NotFoundError(RuntimeError):
    """Processes that did not come.

    Args:
        ranks: theirs.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        super().__init__(ranks)
        self.ranks = list(ranks)


def listen(address: str) -> socket.socket:
    """Listens at this process's own address; at a name or an address of a network, on all of the machine's.

    Args:
        address: `host:port`.

    Raises:
        OSError: another program does.

    Example:
        >>> listen("127.0.0.1:0").close()
    """
    host, _, port = address.rpartition(":")
    if host.startswith(_LOOPBACK):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return _bound(socket.socket(family), (host.strip("[]"), int(port)))
    if socket.has_dualstack_ipv6():
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        with contextlib.suppress(OSError):
            return _bound(listener, ("::", int(port)))
    return _bound(socket.socket(), ("", int(port)))


def _bound(listener: socket.socket, where: tuple[str, int]) -> socket.socket:
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def connect(listener: socket.socket, rank: int, addresses: Sequence[str], seconds: float) -> list[socket.socket | None]:
    """Connects this process to all others.

    Args:
        listener: what `listen` gave; it is closed.
        rank: of this process.
        addresses: of all processes, by rank, the same in each.
        seconds: how long to wait for them.

    Returns:
        A socket for each process, by rank; none for this one.

    Raises:
        NotFoundError: some have not come.

    Example:
        >>> connect(listen("127.0.0.1:0"), 0, ["127.0.0.1:0"], 1.0)
        [None]
    """
    token = hashlib.sha256(",".join(addresses).encode()).digest()
    deadline = time.monotonic() + seconds
    found: dict[int, socket.socket] = {}
    try:
        with listener:
            for other in range(rank):
                found[other] = _reached(addresses[other], (token, other), _HELLO.pack(token, rank), deadline)
            _accept(listener, found, token, rank, len(addresses), deadline)
    except BaseException:
        for one in found.values():
            one.close()
        raise
    for one in found.values():
        one.settimeout(None)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return [found.get(other) for other in range(len(addresses))]


def _reached(address: str, expected: tuple[bytes, int], hello: bytes, deadline: float) -> socket.socket:
    """A connection to a process of a lower rank, once it listens."""
    host, _, port = address.rpartition(":")
    while True:
        left = max(deadline - time.monotonic(), _POLL_SECONDS)
        with contextlib.suppress(OSError):
            one = socket.create_connection((host.strip("[]"), int(port)), timeout=left)
            # It answers when those of ranks below its own have.
            if _said(one, hello) and _heard(one, left) == expected:
                return one
            one.close()
        if time.monotonic() > deadline:
            raise NotFoundError([expected[1]])
        time.sleep(_POLL_SECONDS)


def _accept(
    listener: socket.socket, found: dict[int, socket.socket], token: bytes, rank: int, size: int, deadline: float
) -> None:
    """Takes the connections of all processes of higher ranks."""
    while missing := [other for other in range(rank + 1, size) if other not in found]:
        listener.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            one, _ = listener.accept()
        except TimeoutError:
            raise NotFoundError(missing) from None
        theirs, other = _heard(one, _HELLO_SECONDS)
        if theirs == token and other in missing and _said(one, _HELLO.pack(token, rank)):
            found[other] = one
        else:
            one.close()


def _said(one: socket.socket, hello: bytes) -> bool:
    try:
        one.sendall(hello)
    except OSError:
        return False
    return True


def _heard(one: socket.socket, seconds: float) -> tuple[bytes, int]:
    """What the other side says it is; nothing where it does not say it in time."""
    deadline = time.monotonic() + seconds
    text = b""
    with contextlib.suppress(OSError):
        while len(text) < _HELLO.size:
            one.settimeout(max(deadline - time.monotonic(), 0.001))
            some = one.recv(_HELLO.size - len(text))
            if not some:
                break
            text += some
    return _HELLO.unpack(text) if len(text) == _HELLO.size else (b"", -1)
