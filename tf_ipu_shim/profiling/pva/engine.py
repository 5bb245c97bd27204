"""Builds the programs around a run in a pva report: variables to the IPUs, variables back, and the switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tf_ipu_shim.profiling.profile import Profile, ProgramRow
from tf_ipu_shim.profiling.pva.program import Program

_KEPT = frozenset({"weight", "optimizer_state", "accumulator"})


def make_engine(profile: Profile, by_row: Mapping[int, Sequence[Program]]) -> list[Program]:
    """The switch between variables to the IPUs, a run, and variables back, with the steps before it.

    The index of the next program, and seeds, are sent to all IPUs if there are several. All variables of an IPU are one
    copy.

    Source: docs/reference/facts.md, section "Profiles".
    """
    switch = _make_program("branch", "switchControl")
    main = _make_program("part", "main")
    for row in profile.programs:
        if row.parent < 0:
            program = by_row[row.id]
            main.children.extend(program[-1].children if row.kind == "step" else program)
    switch.children.extend([_copy_program(profile, "host to device"), main, _copy_program(profile, "device to host")])
    programs = [
        switch,
        *switch.children,
        *(child for part in switch.children if part is not main for child in part.children),
    ]
    if len(profile.ipus) > 1:
        names = ("switchControlBroadcast/GlobalPre", "__seed/set/setMasterSeed/GlobalPre")
        programs = [*(_make_program("links", name) for name in names), *programs]
    return programs


def _copy_program(profile: Profile, name: str) -> Program:
    """Copies of all variables with the host."""
    program = _make_program("part", name)
    for ipu in profile.ipus:
        sizes = (row.bytes for row in profile.variables if row.always and row.ipu == ipu.ipu and row.kind in _KEPT)
        if total := sum(sizes):
            moved = f"variables of IPU {ipu.ipu}"
            row = _make_row("host", moved, total)
            program.children.extend([Program(row, kind=Program.Type.StreamCopyBegin), Program(row)])
    return program


def _make_program(kind: str, name: str) -> Program:
    return Program(_make_row(kind, name))


def _make_row(kind: str, name: str, size: int = 0) -> ProgramRow:
    """Returns a node that no run contains, with no cycles."""
    return ProgramRow(-1, -1, kind, name, "", None, "[]", 0, 0, 1.0, 1, 0, 0, size, 0, -1, "")
