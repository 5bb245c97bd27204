"""Defines integer types for the three ways to number IPUs: shards, chips and devices.

A program is written in shards. Each of its replicas runs its shards on chips of one device: `Replica.chip` maps a
shard to its chip. A chip's place in the simulated system is known only once its device is attached
(`IpuDevice.physical_ipus`).
"""

from __future__ import annotations

from typing import NewType

Shard = NewType("Shard", int)
"""A part of a program, as sharding annotations and `ipu_shard` number it: 0 to the replica's number of shards - 1."""

Chip = NewType("Chip", int)
"""An IPU of a TensorFlow device, by its place in the device: what the plugin calls a chip."""

Device = NewType("Device", int)
"""A TensorFlow device `/device:IPU:<ordinal>`, by its ordinal."""
