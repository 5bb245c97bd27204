"""Defines the messages between `poprun` and its agent on another host."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

GREETING = "tf_ipu_shim agent: "
"""The first words of the greeting's line. A login shell may print lines before it."""


@dataclasses.dataclass(frozen=True)
class Greeting:
    """The facts that an agent reports about its host.

    Args:
        version: the version of the package.
        address: `host:port` that the instance can listen on.
        first_device: the index of the first instance's device there, among devices of an instance's size; None if too
            few.
    """

    version: str
    address: str
    first_device: int | None


@dataclasses.dataclass(frozen=True)
class Order:
    """A request to an agent to run a program.

    Args:
        command: the words of the program.
        environment: variables that are set in addition to the host's own.
        directory: the program's working directory.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: str
