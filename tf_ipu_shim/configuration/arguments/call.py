"""Describes an API call and the effect of each argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tf_ipu_shim.machine.environment.effects import RECORDED


@dataclass(frozen=True)
class Argument:
    """The effect of an argument.

    Args:
        effect: one of `machine.environment.effects.EFFECTS`.
        default: the default of an argument that is only recorded: with this value it is as if it were not given.
    """

    effect: str
    meaning: str
    default: Any = None


@dataclass(frozen=True)
class Call:
    """A call, or several calls with the same arguments.

    Args:
        heading: the heading of the section in `docs/reference/options/options.md`.
        arguments: the arguments by name. Left out are those that are the computation itself, such as a layer's size.
    """

    heading: str
    arguments: Mapping[str, Argument]


def recorded(why: str, default: Any = None) -> Argument:
    """Describes an argument without effect.

    Example:
        >>> recorded("nothing is faster for it here", False).effect
        'no effect'
    """
    return Argument(RECORDED, why, default)
