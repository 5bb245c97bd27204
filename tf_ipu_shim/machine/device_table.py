"""Enumerates the Poplar devices of a server: groups of IPUs and their ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

# The order in which the published listing of a 16-IPU server with eight cards joins its IPUs.
EIGHT_CARDS = (5, 7, 4, 6, 3, 1, 2, 0, 13, 15, 12, 14, 9, 11, 10, 8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoplarDevice:
    """One entry of the device list: some IPUs that are attached to as one.

    An IPU's number is the id of the device that contains only this IPU, as in the listing of `gc-info`.

    Example:
        >>> enumerate_devices(range(4))[4]
        PoplarDevice(id=4, ipus=(0, 1))
    """

    id: int
    """Poplar device id: its index in the list, which `select_ipus` accepts."""
    ipus: tuple[int, ...]
    """Its IPUs, in the order of the device's own numbering (DNC id 0, 1, ...)."""

    @property
    def num_ipus(self) -> int:
        """IPUs in the device."""
        return len(self.ipus)


def enumerate_devices(order: Sequence[int]) -> tuple[PoplarDevice, ...]:
    """Lists the devices of a server: single IPUs, then pairs, fours and so on up to all of them.

    Source: docs/reference/facts.md, section "Device ids".

    Example:
        >>> enumerate_devices(EIGHT_CARDS)[24].ipus
        (5, 7, 4, 6)
    """
    order = tuple(order)
    n = len(order)
    if not n or n & (n - 1):
        raise ValueError(
            f"A server of {n} IPUs cannot be listed. The number of IPUs must be a power of two. Choose a power of two."
        )
    if sorted(order) != list(range(n)):
        raise ValueError(
            f"The IPUs of a server must be numbered 0 to {n - 1}, each once. Received {order}. Number the IPUs from 0."
        )
    groups: list[tuple[int, ...]] = [(ipu,) for ipu in range(n)]
    size = 2
    while size <= n:
        groups += [order[start : start + size] for start in range(0, n, size)]
        size *= 2
    return tuple(PoplarDevice(id=index, ipus=group) for index, group in enumerate(groups))
