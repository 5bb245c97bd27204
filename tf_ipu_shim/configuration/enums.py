"""Defines the enumerations of `IPUConfig`; their integers appear in `to_dict()`, JSON and the protobuf."""

from __future__ import annotations

from enum import Enum


class SelectionOrder(Enum):
    """The order in which shards are assigned to the IPUs of a multi-IPU device.

    Source: `tensorflow.python.ipu.config`.
    """

    AUTO = 0
    ZIGZAG = 1
    SNAKE = 2
    HOOF = 3


class ExecutionProfileType(Enum):
    """How fine an execution profile is: none, one figure for the device, per IPU, or per tile.

    Source: `tensorflow.python.ipu.config`.
    """

    NO_PROFILE = 0
    DEVICE_PROFILE = 1
    IPU_PROFILE = 2
    TILE_PROFILE = 3


class DeviceConnectionType(Enum):
    """When a TensorFlow device attaches to its IPUs: when configured, when first used, or never.

    Source: `tensorflow.python.ipu.config`.
    """

    ALWAYS = 0
    ON_DEMAND = 1
    PRE_COMPILE = 3
    NEVER = 2


class MergeRemoteBuffersBehaviour(Enum):
    """Whether remote buffers of the same shape share one: never, always, or if it saves code.

    Source: `tensorflow.python.ipu.config`.
    """

    NO_MERGING = 0
    MERGE = 1
    IF_BENEFICIAL = 2


class SchedulingAlgorithm(Enum):
    """Which scheduler orders the instructions; `CHOOSE_BEST` tries several and keeps the cheapest in memory.

    Source: `tensorflow.python.ipu.config`.
    """

    CHOOSE_BEST = 0
    CLUSTERING = 1
    POST_ORDER = 2
    LOOK_AHEAD = 3
    SHORTEST_PATH = 4


class StochasticRoundingBehaviour(Enum):
    """Where float16 results round stochastically: nowhere, everywhere, or where replicas hold identical values.

    Source: `tensorflow.python.ipu.config` (SDK 2.4 and newer; before it the option was a bool).
    """

    OFF = 0
    ON = 1
    REPLICA_IDENTICAL_ONLY = 2

    @staticmethod
    def from_bool(value: bool) -> StochasticRoundingBehaviour:
        """Returns the behaviour an old bool option meant.

        Example:
            >>> StochasticRoundingBehaviour.from_bool(True)
            <StochasticRoundingBehaviour.ON: 1>
        """
        return StochasticRoundingBehaviour.ON if value else StochasticRoundingBehaviour.OFF
