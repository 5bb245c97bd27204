"""Implements `compilation` of a pva report: the program's structure and memory."""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

from tf_ipu_shim.machine.memory.tiles import Tiles
from tf_ipu_shim.profiling.profile import IpuRow, Profile
from tf_ipu_shim.profiling.pva.engine import make_engine
from tf_ipu_shim.profiling.pva.memory import (
    IpuMemory,
    LiveMemory,
    LivenessStep,
    Temporaries,
    Tile,
    TileMemory,
    Variable,
    make_variable,
)
from tf_ipu_shim.profiling.pva.program import ComputeSet, Program
from tf_ipu_shim.profiling.pva.refusing import NO_MAPPING, Refusing
from tf_ipu_shim.profiling.pva.target import make_target


class Graph(NamedTuple):
    """Counts of a program's graph."""

    numComputeSets: int
    numVertices: int


class Compilation(Refusing):
    """The structure of one replica's program; all replicas are equal."""

    refused = {"loweredVariables": NO_MAPPING, "alwaysLiveVariablesForTile": NO_MAPPING}

    def __init__(self, profile: Profile, facts: dict[str, Any]) -> None:
        self._profile = profile
        self._io_tiles: dict[str, int] = facts.get("io_tiles", {})
        self.target = make_target(facts)
        self.graph = Graph(len(profile.compute_sets), sum(row.vertices for row in profile.compute_sets))

    @functools.cached_property
    def computeSets(self) -> list[ComputeSet]:
        """All compute sets, in the order in which they first run."""
        totals = {row.compute_set: row.total_cycles for row in reversed(self._profile.programs)}
        return [ComputeSet(row, totals.get(row.id, 0)) for row in self._profile.compute_sets]

    @functools.cached_property
    def by_row(self) -> dict[int, list[Program]]:
        """The programs of each node of the profile; not in Graphcore's library. A copy with the host is two."""
        programs: dict[int, list[Program]] = {}
        for row in self._profile.programs:
            begin = [Program(row, kind=Program.Type.StreamCopyBegin)] if row.kind == "host" else []
            computes = None if row.compute_set < 0 else self.computeSets[row.compute_set]
            programs[row.id] = [*begin, Program(row, computes)]
            if row.parent >= 0:
                programs[row.parent][-1].children.extend(programs[row.id])
        return programs

    @functools.cached_property
    def programs(self) -> list[Program]:
        """All programs, including the parts of others: the engine's, then a run's."""
        run = [program for several in self.by_row.values() for program in several]
        return [*make_engine(self._profile, self.by_row), *run]

    @property
    def alwaysLiveVariables(self) -> list[Variable]:
        """Variables and constants, which are live at every step."""
        return [make_variable(row) for row in self._profile.variables if row.always]

    @functools.cached_property
    def ipus(self) -> list[IpuMemory]:
        """The IPUs, by their place in the device."""
        return [IpuMemory(self._tiles(row)) for row in self._profile.ipus]

    @property
    def tiles(self) -> list[Tile]:
        """The tiles of all IPUs, beginning with IPU 0."""
        return [tile for ipu in self.ipus for tile in ipu.tiles]

    def _tiles(self, ipu: IpuRow) -> list[Tile]:
        always = [row for row in self._profile.variables if row.always and row.ipu == ipu.ipu]
        fed = [row.bytes for row in always if row.kind == "argument"]  # the only ones that are always there
        other_rows = [row for row in always if row.kind != "argument"]
        io_tiles = self._io_tiles.get(str(ipu.ipu), 0)
        spread = Tiles.filled(self.target.tilesPerIpu, (row.bytes for row in other_rows), io_tiles, fed)
        constants = Tiles(self.target.tilesPerIpu - io_tiles)
        for row in other_rows:
            constants.place([row.bytes], counts=row.kind == "constant")
        tensors = json.loads(ipu.tile_bytes)
        totals = self._with_temporaries(ipu.ipu, tensors, io_tiles, fed)
        figures = zip(spread, totals, [*constants.bytes(), *[0] * io_tiles], tensors)
        limit = self.target.bytesPerTile
        return [
            Tile(TileMemory(tile_bytes, total, limit, constant, sure)) for tile_bytes, total, constant, sure in figures
        ]

    def _with_temporaries(self, ipu: int, tensors: list[int], io_tiles: int, fed: list[int]) -> list[int]:
        """Bytes on each tile at the step that needs most, temporaries of its library call included."""
        rows = [row for row in self._profile.liveness if row.ipu == ipu]
        largest = max(rows, key=lambda row: row.bytes + self._temporaries(row.program).bytes, default=None)
        if largest is None:
            return tensors
        call = self._temporaries(largest.program)
        if not call.bytes:
            return tensors
        variables = [row for row in self._profile.variables if row.ipu == ipu]
        alive = [row.bytes for row in variables if row.always and not (io_tiles and row.kind == "argument")]
        alive += [row.bytes for row in variables if not row.always and row.first <= largest.step <= row.last]
        spread = Tiles.filled(self.target.tilesPerIpu, alive, io_tiles, fed)
        bytes_per_tile = call.bytes // call.tiles
        return [size + bytes_per_tile * (tile < call.tiles) for tile, size in enumerate(spread)]

    def _temporaries(self, program: int) -> Temporaries:
        """Returns the temporary memory of a step's library call."""
        return self._calls.get(program, Temporaries())

    @functools.cached_property
    def _calls(self) -> dict[int, Temporaries]:
        """Library calls by the program that they are in."""
        rows = [row for row in self._profile.programs if row.temporary_bytes]
        return {row.parent: Temporaries(row.name, row.temporary_bytes, row.tiles) for row in rows}

    @functools.cached_property
    def livenessProgramSteps(self) -> list[LivenessStep]:
        """The steps of all IPUs, in the order in which they begin. Steps on other IPUs at the same time are counted
        too."""
        rows, starts = self._profile.liveness, {row.id: row.start for row in self._profile.programs}
        live_bytes, at = [0] * len(self._profile.ipus), [-1] * len(self._profile.ipus)
        calls = [Temporaries()] * len(self._profile.ipus)
        ordered, last = [], dict.fromkeys(range(len(live_bytes)), 0)
        for row in rows:  # what takes no cycles is where the step before it was
            last[row.ipu] = starts.get(row.program, last[row.ipu])
            ordered.append((last[row.ipu], row.ipu, row.step, row))
        steps = []
        for _, ipu, step, row in sorted(ordered, key=lambda item: item[:3]):
            live_bytes[ipu], at[ipu], calls[ipu] = row.bytes, step, self._temporaries(row.program)
            program = self.by_row[row.program][-1] if row.program >= 0 else None
            memory = LiveMemory(
                list(live_bytes), list(at), list(calls), self._profile.variables, range(len(live_bytes))
            )
            steps.append(LivenessStep(program, memory, row.op))
        return steps
