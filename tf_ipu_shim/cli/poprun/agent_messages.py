"""What `poprun` and its agent on another host tell each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

GREETING = "tf_ipu_shim agent: "
"""What the greeting's line begins with; a login shell may print lines before."""


@dataclasses.dataclass(frozen=True)
class Greeting:
    """What an agent says of its host.

    Args:
        version: of the package.
        address: `host:port` where the instance can listen.
        first_device: which of the devices of an instance's size the first instance there takes; None if too few.
    """

    version: str
    address: str
    first_device: int | None


@dataclasses.dataclass(frozen=True)
class Order:
    """What an agent is to run.

    Args:
        command: the words of the program.
        environment: variables that are set in addition to the host's own.
        directory: where the program runs.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: str
