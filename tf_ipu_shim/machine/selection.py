"""Maps shards to the IPUs of a device: `IPUConfig.selection_order`."""

from __future__ import annotations

from typing import TypeVar

_Ipu = TypeVar("_Ipu", bound=int)

ORDERS = ("AUTO", "ZIGZAG", "SNAKE", "HOOF")


def shard_order(num_ipus: int, order: str = "AUTO", *, pipelined: bool = False) -> tuple[int, ...]:
    """Places in a device (its DNC ids) by shard index.

    Source: docs/reference/facts.md, section "Order of shards".

    Example:
        >>> shard_order(8, "HOOF")
        (0, 2, 4, 6, 7, 5, 3, 1)
    """
    if num_ipus < 1:
        raise ValueError(f"Shards cannot be placed on {num_ipus} IPUs. Pass at least 1.")
    if order not in ORDERS:
        raise ValueError(f"There is no selection order {order!r}. Use one of: {', '.join(ORDERS)}.")
    if order == "AUTO":
        order = "SNAKE" if pipelined else "ZIGZAG"
    if order == "HOOF":
        return (*range(0, num_ipus, 2), *reversed(range(1, num_ipus, 2)))
    if order == "SNAKE":
        # Every second rung is walked from right to left; a last rung with one IPU has nothing to turn.
        return tuple(i ^ 1 if i % 4 >= 2 and (i ^ 1) < num_ipus else i for i in range(num_ipus))
    return tuple(range(num_ipus))


def ipus_of_replica(shards: int, num_ipus: int) -> int:
    """Returns the number of a device's IPUs in one replica.

    A power of two of them, as devices have: a program of three shards leaves an IPU idle. If the number of shards
    divides the device, it is that number, which the IPU model allows.

    Source: docs/reference/facts.md, section "Order of shards".

    Example:
        >>> ipus_of_replica(3, 8), ipus_of_replica(3, 6)
        (4, 3)
    """
    return 1 << (shards - 1).bit_length() if num_ipus % shards else shards


def shard_ipus(
    ipus: tuple[_Ipu, ...], order: str = "AUTO", *, pipelined: bool = False, replicas: int = 1
) -> tuple[tuple[_Ipu, ...], ...]:
    """IPU numbers by replica and shard.

    Example:
        >>> shard_ipus((5, 7, 4, 6), "SNAKE")
        ((5, 7, 6, 4),)
    """
    if replicas < 1 or len(ipus) % replicas:
        raise ValueError(
            f"{len(ipus)} IPUs cannot be divided among {replicas} replicas evenly. Choose a divisor of the number of "
            "IPUs."
        )
    shards = len(ipus) // replicas
    positions = shard_order(shards, order, pipelined=pipelined)
    return tuple(tuple(ipus[replica * shards + position] for position in positions) for replica in range(replicas))
