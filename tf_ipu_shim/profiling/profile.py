"""Defines the records of a program's profile: each class is a table of the file, each field a column."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

HOST = -1
"""The host, among the numbers of IPUs that something is copied between."""


class IpuRow(NamedTuple):
    """An IPU of the program's first replica.

    Args:
        used: whether the program runs anything on it.
        not_always_live_bytes: the rest at the largest step.
        largest_step: the op that runs then.
        categories: bytes at that step by category, as JSON.
        remote: bytes in remote memory by category, as JSON.
        tile_bytes: bytes on each tile at that step, as JSON.
        busy_cycles: the cycles of a run in which it is active.
    """

    ipu: int
    used: int
    always_live_bytes: int
    not_always_live_bytes: int
    largest_step: str
    categories: str
    remote: str
    tile_bytes: str
    busy_cycles: float


class VariableRow(NamedTuple):
    """A tensor in the memory of an IPU.

    Args:
        name: the name of the variable, or of the op that makes it.
        kind: one of `machine.memory.CATEGORIES`.
        always: whether it is live at every step.
        first: number of the liveness step at which it is created.
        line: the user's line; None if it is not known.
    """

    id: int
    ipu: int
    name: str
    kind: str
    bytes: int
    always: int
    first: int
    last: int
    line: str | None


class LivenessRow(NamedTuple):
    """The live memory at one step of an IPU.

    Args:
        step: its number, from 0 on each IPU.
        bytes: the bytes that are not always there, at this step.
        program: the id of the `ProgramRow` of the step; -1 if it needs no cycles.
    """

    ipu: int
    step: int
    op: str
    bytes: int
    program: int


class ProgramRow(NamedTuple):
    """One node of the program tree.

    Args:
        id: its number, in the order in which they begin.
        parent: the id of the node that it is in; -1 for the outermost.
        kind: as in `cycle_model.Entry`.
        name: the name of the op, compute set or copy.
        line: the user's line; None if it is not known.
        start: cycle in the first run of its block.
        cycles: the cycles of one run, all iterations of a loop together.
        times: iterations of a loop; 1 for all else.
        exact: whether the number of iterations is known.
        temporary_bytes: the temporary bytes of the library call, over all tiles, in no other figure.
        compute_set: the id of its compute set; -1 if it has none.
        computation: kind of computation, which `error_factors` of the file is by.
        moves: bytes of each copy between IPUs or with the host, as JSON: `[[bytes, IPU, IPU]]`, with -1 for the host;
            empty for all others. Not in files of format 1.
    """

    id: int
    parent: int
    kind: str
    name: str
    op: str
    line: str | None
    ipus: str
    start: int
    cycles: int
    times: float
    exact: int
    tiles: int
    total_cycles: int
    bytes: int
    temporary_bytes: int
    compute_set: int
    computation: str
    moves: str = ""


class ComputeSetRow(NamedTuple):
    """A compute set, which several programs may run.

    Args:
        name: scope, op, and the names in XLA and PopLibs.
        runs: how often a run of the program runs it.
    """

    id: int
    name: str
    vertex: str
    vertices: int
    tiles: int
    cycles: int
    runs: float


class ExchangeRow(NamedTuple):
    """The bytes exchanged between two IPUs.

    Args:
        bytes: the bytes of a run; a loop's body counts once.
    """

    source: int
    destination: int
    bytes: int


class PairRow(NamedTuple):
    """A fact about the whole program, or an option."""

    name: str
    value: str


class Profile(NamedTuple):
    """All of a program; the fields are the file's tables."""

    facts: list[PairRow]
    options: list[PairRow]
    ipus: list[IpuRow]
    variables: list[VariableRow]
    liveness: list[LivenessRow]
    programs: list[ProgramRow]
    compute_sets: list[ComputeSetRow]
    exchanges: list[ExchangeRow]


def parse_facts(profile: Profile) -> dict[str, Any]:
    """Returns the facts of a profile by name."""
    return {row.name: json.loads(row.value) for row in profile.facts}
