"""What each option changes on a simulated system, so that a report can list what was set without effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration import table
from tf_ipu_shim.configuration.base import _ConfigBase
from tf_ipu_shim.configuration.verification import VerificationOptions


@dataclass(frozen=True)
class Effect:
    """One option: its path, its value, whether that differs from the default, and what it changes here.

    `effect` is `devices`, `memory model` or `none: recorded`.
    """

    path: str
    value: Any
    changed: bool
    effect: str


def effects_of(config: _ConfigBase, changed_only: bool = False) -> list[Effect]:
    """Lists the options with what they change on a simulated system.

    Args:
        config: a configuration.
        changed_only: leave out the options that have their default value.

    Returns:
        One `Effect` for each option, in the order of the table.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> config.norms.use_stable_statistics = True
        >>> [effect.effect for effect in effects_of(config, changed_only=True)]
        ['none: recorded']
    """
    values = {path: getattr(owner, name) for path, owner, name in config._options()}
    listed = []
    line = max(sdk.current(), (2, 1))
    for option in table.options_of(line):
        if option.path in values:
            changed = values[option.path] != option.at(line)[1] and option.default is not VerificationOptions
            listed.append(Effect(option.path, values[option.path], changed, option.effect))
    return [effect for effect in listed if effect.changed or not changed_only]
