"""Serialises memory plans as JSON, for the executable cache."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from tf_ipu_shim.machine.memory.code import TilePart
from tf_ipu_shim.machine.memory.plan import IpuPlan, LibraryCall, MemoryPlan, Owner


def to_text(plan: MemoryPlan) -> str:
    """Returns all figures of a plan as JSON.

    Example:
        >>> plan = MemoryPlan(program="p", device="/device:IPU:0", chip="GC200", ipus=(), exchanges={(0, 1): 4})
        >>> from_text(to_text(plan)) == plan
        True
    """
    fields = dataclasses.asdict(plan)
    del fields["savings"]  # a program that is kept fits, or runs all the same
    for name in ("variables", "exchanges"):
        fields[name] = [[*pair, size] for pair, size in fields[name].items()]
    return json.dumps(fields)


def from_text(text: str) -> MemoryPlan:
    """Returns the plan that `to_text` wrote."""
    try:
        fields = json.loads(text)
        for name in ("variables", "exchanges"):
            fields[name] = {(first, second): size for first, second, size in fields[name]}
        fields["ipus"] = tuple(_ipu(ipu) for ipu in fields["ipus"])
        fields["coarse"] = tuple((name, reason) for name, reason in fields["coarse"])
        fields["shard_ipus"] = tuple(map(tuple, fields["shard_ipus"]))
        return MemoryPlan(**fields)
    except (KeyError, TypeError) as error:
        raise ValueError(f"No memory plan: {error!r}. Lower the program again.") from error


def _ipu(fields: dict[str, Any]) -> IpuPlan:
    owners = tuple(Owner(**owner) for owner in fields["owners"])
    library = LibraryCall(*fields["library"]) if fields["library"] is not None else None
    runs = tuple((size, tiles) for size, tiles in fields["tile_runs"])
    code = tuple(TilePart(*part) for part in fields["code"])
    return IpuPlan(**{**fields, "owners": owners, "tile_runs": runs, "library": library, "code": code})
