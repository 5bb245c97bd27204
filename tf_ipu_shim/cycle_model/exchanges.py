"""Computes the cycles of exchanges between IPUs: separate ones, and those that a pipeline's slot joins."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.cycle_model.matmuls import SYNC_CYCLES
from tf_ipu_shim.cycle_model.sizes import Move
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import ChipSpec


class SlotExchange(NamedTuple):
    """The exchange in each slot of a pipeline: all stages send and receive at once.

    Args:
        share: the part of its separate cycles that an exchange of a mini-batch takes in the slots.
        by_ipu: for each IPU, the cycles that its exchanges of a mini-batch take in the slots.
    """

    cycles: int
    share: float
    by_ipu: Mapping[int, int]


NO_EXCHANGE = SlotExchange(0, 1.0, {})


def exchange_cycles(moves: Sequence[Move], chip: ChipSpec, num_ipus: int, share: float = 1.0) -> tuple[int, int]:
    """Returns the cycles of sync and copies of one exchange on a device of so many IPUs, or of a share of it.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> exchange_cycles([Move(8192, 0, 1), Move(8192, 1, 0)], CHIPS["gc200"], 2)
        (166, 1803)
    """
    if not moves:
        return 0, 0
    count = links.round_up_to_ladders(max(num_ipus, *(ipu + 1 for ipu in _ends(moves))))
    sync = links.sync_cycles(chip, count) + SYNC_CYCLES
    return int(share * sync), int(share * chip.cycles(links.phase_seconds(moves, count)))


def join(exchanges: Sequence[Sequence[Move]], slots: int, chip: ChipSpec, num_ipus: int) -> SlotExchange:
    """Joins the exchanges of a mini-batch, which takes this many slots of an IPU."""
    together = [move._replace(bytes=-(-move.bytes // slots)) for moves in exchanges for move in moves]
    if not together:
        return NO_EXCHANGE

    def by_ipu(share: float) -> Mapping[int, int]:
        cycles = collections.Counter[int]()
        for moves in exchanges:
            cycles.update(dict.fromkeys(_ends(moves), sum(exchange_cycles(moves, chip, num_ipus, share))))
        return cycles

    cycles = sum(exchange_cycles(together, chip, num_ipus))
    share = slots * cycles / max(by_ipu(1.0).values())
    return SlotExchange(cycles, share, by_ipu(share))


def _ends(moves: Iterable[Move]) -> set[int]:
    return {ipu for move in moves for ipu in (move.source, move.destination)}
