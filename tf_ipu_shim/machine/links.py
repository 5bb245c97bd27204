"""Models the IPU-Links of a device: routes, and the time of exchanges and syncs.

The IPUs of a device form a ladder. Places 2k and 2k+1 are a rung, and each place is linked to the places two above and
two below. More than 64 IPUs are several such ladders: the four IPUs of a machine reach their counterparts in the next
ladder over its gateway.

These are estimates. Bandwidths and the latency of a sync are as in Graphcore's model of a multi-IPU system. The least
time of an exchange is computed from measured ones. The bandwidth of a gateway is from the data sheet; its latency is
calibrated. We assume that a link delays data as long as a sync. The ring that pods can close between the ends of the
ladder is not modelled.

Source: docs/reference/facts.md, section "Links and syncs".
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable

from tf_ipu_shim.machine.chips import ChipSpec

LINK_BYTES_PER_SECOND = 128 * 2**30 / 8 * 0.85
"""The rate of one IPU-Link in one direction: 128 Gibit/s at 85 % efficiency."""
LINKS_OF_LONE_PAIR = 4
"""Links between two IPUs that are a device by themselves."""
LINKS_PER_LADDER_EDGE = 2
"""Links across a rung, up and down in a longer ladder."""
LATENCY_SECONDS_PER_HOP = 15e-9
"""Time a signal takes over one link."""
EXCHANGE_SECONDS = 1.2e-6
"""Time of an exchange between IPUs however few bytes it moves, without its sync and hops.

Computed: bytes of half the size take 3,043 of 4,030 cycles of 16 GC2, so none take 2,050. Four hops are 96 of them.
"""
IPUS_OF_LADDER = 64
"""IPUs that are linked by IPU-Links at most: a Pod64."""
IPUS_OF_GATEWAY = 4
"""IPUs that share a gateway: those of a machine."""
GATEWAY_BYTES_PER_SECOND = 2 * 100e9 / 8
"""The rate of a gateway's two links in one direction."""
GATEWAY_LATENCY_SECONDS = 1.88e-6
"""From gateway to gateway: not published, but calibrated by ResNet-50 on 128 IPUs in docs/results/accuracy.md."""


def round_up_to_ladders(num_ipus: int) -> int:
    """Returns the smallest number of IPUs, from a minimum on, that form whole rungs and ladders.

    Example:
        >>> round_up_to_ladders(3), round_up_to_ladders(70)
        (4, 128)
    """
    size = IPUS_OF_LADDER if num_ipus > IPUS_OF_LADDER else 2 if num_ipus > 1 else 1
    return -(-num_ipus // size) * size


def route(src: int, dst: int, num_ipus: int) -> tuple[int, ...]:
    """Returns the places data passes through: across the rung first, then to the right ladder, then along the side.

    Example:
        >>> route(0, 5, 8)
        (0, 1, 3, 5)
    """
    _check(num_ipus, src, dst)
    positions = [src]
    if (src ^ dst) & 1:
        positions.append(src ^ 1)
    while positions[-1] // IPUS_OF_LADDER != dst // IPUS_OF_LADDER:
        positions.append(positions[-1] + (IPUS_OF_LADDER if dst > positions[-1] else -IPUS_OF_LADDER))
    while positions[-1] != dst:
        positions.append(positions[-1] + (2 if dst > positions[-1] else -2))
    return tuple(positions)


def link_bytes_per_second(num_ipus: int) -> float:
    """Returns the rate between two neighbours on a ladder, in one direction.

    Example:
        >>> round(link_bytes_per_second(2) / 1e9, 1)
        58.4
    """
    if num_ipus < 2:
        raise ValueError(
            f"A device of {num_ipus} IPUs has no IPU-Links between its IPUs; expected two or more. "
            "Choose a larger device."
        )
    links = LINKS_OF_LONE_PAIR if num_ipus == 2 else LINKS_PER_LADDER_EDGE
    return LINK_BYTES_PER_SECOND * links


def phase_seconds(transfers: Iterable[tuple[int, int, int]], num_ipus: int) -> float:
    """Returns the seconds of an exchange phase with several concurrent copies.

    The busiest link decides, in the busier of its two directions, together with the longest way and what any exchange
    takes.

    Example:
        >>> round(phase_seconds([(29_205_777_612, 0, 2), (29_205_777_612, 1, 3)], 4), 3)
        1.0
    """
    load: collections.Counter[tuple[int, int]] = collections.Counter()
    over_gateways: collections.Counter[tuple[int, int]] = collections.Counter()
    longest = 0.0
    for num_bytes, src, dst in transfers:
        if num_bytes < 0:
            raise ValueError(f"An exchange cannot move {num_bytes} bytes. Pass 0 or more.")
        positions = route(src, dst, num_ipus)
        if num_bytes and src != dst:
            for position, next_place in zip(positions, positions[1:]):
                if position // IPUS_OF_LADDER == next_place // IPUS_OF_LADDER:
                    load[position, next_place] += num_bytes
                else:
                    over_gateways[position // IPUS_OF_GATEWAY, next_place // IPUS_OF_GATEWAY] += num_bytes
            apart = abs(src // IPUS_OF_LADDER - dst // IPUS_OF_LADDER)
            longest = max(longest, EXCHANGE_SECONDS + _latency(len(positions) - 1 - apart, apart))
    busiest = 0.0
    if load:
        busiest = max(load.values()) / link_bytes_per_second(num_ipus)
    if over_gateways:
        busiest = max(busiest, max(over_gateways.values()) / GATEWAY_BYTES_PER_SECOND)
    return busiest + longest


def sync_hops(num_ipus: int) -> int:
    """Links that a sync over all IPUs passes one way: half the ladder's length and its rung, then other ladders."""
    _check(num_ipus)
    return 1 + min(num_ipus, IPUS_OF_LADDER) // 2 // 2 + -(-num_ipus // IPUS_OF_LADDER) - 1


def sync_cycles(chip: ChipSpec, num_ipus: int) -> int:
    """Returns the tile clock cycles of a sync over all IPUs of a device, there and back.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> sync_cycles(CHIPS["gc2"], 16)
        240
    """
    # Rounded to femtoseconds first, or the error of binary fractions would round 240.00000000000003 cycles up.
    over_gateways = -(-num_ipus // IPUS_OF_LADDER) - 1
    one_way = _latency(sync_hops(num_ipus) - over_gateways, over_gateways)
    return math.ceil(round(one_way * 2 * chip.clock_hz, 6))


def _latency(over_links: int, over_gateways: int) -> float:
    return over_links * LATENCY_SECONDS_PER_HOP + over_gateways * GATEWAY_LATENCY_SECONDS


def _check(num_ipus: int, *positions: int) -> None:
    if num_ipus < 1:
        raise ValueError(f"A device of {num_ipus} IPUs has no places. Pass at least 1.")
    if num_ipus > 1 and num_ipus % 2:
        raise ValueError(f"A ladder cannot be built from {num_ipus} IPUs: each rung has two. Pass an even number.")
    if num_ipus > IPUS_OF_LADDER and num_ipus % IPUS_OF_LADDER:
        raise ValueError(
            f"{num_ipus} IPUs are not a whole number of ladders of {IPUS_OF_LADDER}. "
            f"Pass a multiple of {IPUS_OF_LADDER}."
        )
    for position in positions:
        if not 0 <= position < num_ipus:
            raise ValueError(
                f"There is no place {position} in a device of {num_ipus} IPUs; expected 0 to {num_ipus - 1}. "
                "Choose such a place."
            )
