"""Lists the effect of each option on a simulated system, to report options set without effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration import old_functions, table, translate
from tf_ipu_shim.configuration.base import _ConfigBase
from tf_ipu_shim.configuration.verification import VerificationOptions
from tf_ipu_shim.cycle_model import planning
from tf_ipu_shim.machine.environment.effects import CYCLES, RECORDED
from tf_ipu_shim.messages import config_pb2


@dataclass(frozen=True)
class Effect:
    """One option: path, value, whether it differs from the default, and its effect.

    `effect` is one of `machine.environment.effects.EFFECTS`. `argument` is the argument of a function of `ipu.utils`
    that set the option, if one did; the value is then the argument's.
    """

    path: str
    value: Any
    changed: bool
    effect: str
    argument: str = ""

    @property
    def name(self) -> str:
        """The name that a script uses for it."""
        return self.argument or self.path

    def parts(self) -> Iterator[Effect]:
        """Yields the option; for options of matmuls and convolutions, those without effect are separate."""
        if self.effect != CYCLES or not isinstance(self.value, Mapping):
            yield self
            return
        read = {name: value for name, value in self.value.items() if name in planning.READ}
        recorded = {name: value for name, value in self.value.items() if name not in planning.READ}
        for value, effect in ((read, CYCLES), (recorded, RECORDED)):
            if value:
                yield dataclasses.replace(self, value=value, effect=effect)


def effects_of(config: _ConfigBase, changed_only: bool = False) -> list[Effect]:
    """Lists the options with their effects on a simulated system.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> config.norms.use_stable_statistics = True
        >>> [effect.effect for effect in effects_of(config, changed_only=True)]
        ['no effect']
    """
    values = {path: getattr(owner, name) for path, owner, name in config._options()}
    listed = []
    line = max(sdk.current(), (2, 1))
    for option in table.options_of(line):
        if option.path in values:
            changed = _differs(values[option.path], option.in_release(line)[1])
            listed.append(Effect(option.path, values[option.path], changed, option.effect))
    return [effect for effect in listed if effect.changed or not changed_only]


def effects_in(options: Any) -> list[Effect]:
    """Lists the options that an `IpuOptions` sets, whether by the functions of `ipu.utils` or field by field."""
    old = options.creator_id == config_pb2.IPU_UTILS
    line = translate.UTILS_SDK if old else max(sdk.current(), (2, 1))
    plain = translate.old_defaults() if old else translate.defaults(line)
    listed = [
        Effect(option.path, value, True, option.effect)
        for option in table.options_of(line)
        if option.field or option.path in _FIELDS
        for value in [_field(options, option.field or _FIELDS[option.path])]
        if value != _field(plain, option.field or _FIELDS[option.path])
    ]
    listed += _verified_transfers(options, plain, old)
    if options.disable_graph_convolution_caching != plain.disable_graph_convolution_caching:
        name = "disable_graph_convolution_caching"
        listed.append(Effect(name, True, True, RECORDED, f"create_ipu_config({name})"))
    return [_with_argument(effect) for effect in listed] if old else listed


def _verified_transfers(options: Any, plain: Any, old: bool) -> Iterator[Effect]:
    """Yields the options of verified transfers that are set, which have no effect."""
    keys = config_pb2.IpuOptions().verified_transfers
    keys.CopyFrom(options.verified_transfers)
    keys.enabled = False
    if keys not in (plain.verified_transfers, _keys(VerificationOptions())):
        yield Effect("_verified_transfers.key_id_pairs", keys, True, RECORDED)
    if old and options.verified_transfers.enabled:  # an option up to SDK 2.2, which these functions outlived
        yield Effect("_verified_transfers.enabled", True, True, RECORDED)


def _with_argument(effect: Effect) -> Effect:
    """Returns an option named and valued as the argument that set it."""
    old_argument = old_functions.argument_of(effect.path)
    if old_argument is None:
        return effect
    argument, inverted = old_argument
    return dataclasses.replace(effect, argument=argument, value=not effect.value if inverted else effect.value)


def _differs(value: Any, default: Any) -> bool:
    if isinstance(default, VerificationOptions):
        return bool(_keys(value) != _keys(default))
    return bool(value != default)


def _keys(keys: VerificationOptions) -> Any:
    """Keys in a form that compares by content."""
    transfers = config_pb2.IpuOptions().verified_transfers
    translate.set_verification(transfers, keys)
    return transfers


# Options whose field `translate` writes by hand.
_FIELDS = {"floating_point_behaviour.esr": "floating_point_behaviour.esr"}


def _field(options: Any, field: str) -> Any:
    for name in field.lstrip("!").split("."):
        options = getattr(options, name)
    if hasattr(options, "add"):
        return {flag.option: flag.value for flag in options}
    return not options if field.startswith("!") else options
