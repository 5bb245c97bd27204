"""Builds the compile and execution reports of trace events, with the keys of Poplar's older JSON reports."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.profiling.profile import Profile, parse_facts
from tf_ipu_shim.profiling.pva.compilation import Compilation
from tf_ipu_shim.profiling.writer import summarize

OWN = "tf_ipu_shim"
"""The key of data that Poplar's reports did not have: the program at a glance, as in `framework.json`."""


def make_graph_report(profile: Profile) -> dict[str, Any]:
    """Reports a program's structure and memory.

    Source: docs/reference/facts.md, section "Profiles": keys that published scripts read.
    """
    facts = parse_facts(profile)
    compilation = Compilation(profile, facts)
    target, tiles = compilation.target, [tile.memory for tile in compilation.tiles]
    total = [memory.total.excludingGaps for memory in tiles]
    return {
        "target": {
            "type": target.type.name.upper(),
            "numIPUs": target.numIPUs,
            "tilesPerIpu": target.tilesPerIpu,
            "numTiles": target.numTiles,
            "bytesPerTile": target.bytesPerTile,
            "totalMemory": target.totalMemory,
            "clockFrequency": target.clockFrequency,
        },
        "graph": {"numComputeSets": compilation.graph.numComputeSets, "numVertices": compilation.graph.numVertices},
        "computeSets": {"names": [row.name for row in profile.compute_sets]},
        "memory": {
            # Gaps are not modelled.
            "byTile": {"total": total, "totalIncludingGaps": total},
            "liveness": {
                "alwaysLive": {"bytesByTile": [memory.alwaysLiveBytes for memory in tiles]},
                "notAlwaysLive": {"maxBytesByTile": [memory.notAlwaysLiveBytes for memory in tiles]},
            },
        },
        OWN: summarize(profile),
    }


def make_execution_report(profile: Profile) -> dict[str, Any]:
    """Reports the modelled cycles of a program's run.

    Source: docs/reference/facts.md, section "Profiles".
    """
    facts = parse_facts(profile)
    return {
        "simulation": {"cycles": facts["cycles"]},
        OWN: {
            "error_factors": facts["error_factors"],
            "busy_cycles_by_ipu": [row.busy_cycles for row in profile.ipus],
            "compute_sets": [
                {"name": row.name, "cycles": row.cycles, "runs": row.runs} for row in profile.compute_sets
            ],
        },
    }
