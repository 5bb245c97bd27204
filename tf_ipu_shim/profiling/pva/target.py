"""Implements `target` of a pva report: the IPU system that a program was compiled for."""

from __future__ import annotations

import enum
from typing import NamedTuple

from tf_ipu_shim.machine import chips


class IPU:
    """Kinds of IPU."""

    class Architecture(enum.Enum):
        """Generations, by Poplar's names for them."""

        Ipu1 = "ipu1"
        Ipu2 = "ipu2"
        Ipu21 = "ipu21"


class _Type(enum.Enum):
    """The kinds of a target."""

    Ipu = "ipu"
    IpuModel = "model"
    Cpu = "cpu"
    Unknown = "unknown"


class _TargetRecord(NamedTuple):
    numIPUs: int
    tilesPerIpu: int
    bytesPerTile: int
    clockFrequency: float
    numReplicas: int
    type: _Type
    architecture: IPU.Architecture


class Target(_TargetRecord):
    """A target: all IPUs of all replicas. Memory in bytes, the clock in hertz."""

    Type = _Type

    @property
    def numTiles(self) -> int:
        """Tiles of all IPUs."""
        return self.numIPUs * self.tilesPerIpu

    @property
    def bytesPerIPU(self) -> int:
        """Memory of one IPU."""
        return self.tilesPerIpu * self.bytesPerTile

    @property
    def totalMemory(self) -> int:
        """Memory of all IPUs."""
        return self.numIPUs * self.bytesPerIPU

    @property
    def ipusPerReplica(self) -> int:
        """IPUs of one replica."""
        return self.numIPUs // self.numReplicas

    @property
    def tilesPerReplica(self) -> int:
        """Tiles of one replica."""
        return self.ipusPerReplica * self.tilesPerIpu

    @property
    def memoryPerReplica(self) -> int:
        """Memory of one replica."""
        return self.ipusPerReplica * self.bytesPerIPU


def make_target(facts: dict[str, object]) -> Target:
    """Returns the target in the facts of a profile."""
    chip = chips.CHIPS[str(facts["chip"])]
    return Target(
        numIPUs=int(str(facts["ipus"])),
        tilesPerIpu=int(str(facts["tiles_per_ipu"])),
        bytesPerTile=int(str(facts["bytes_per_tile"])),
        clockFrequency=float(str(facts["clock_hz"])),
        numReplicas=int(str(facts["replicas"])),
        type=_Type.IpuModel if facts["is_model"] else _Type.Ipu,
        architecture=IPU.Architecture(chip.target),
    )
