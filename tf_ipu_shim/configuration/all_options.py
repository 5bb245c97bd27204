"""Lists everything a script can set, and the effect of each entry (`docs/reference/options/options.md`)."""

from __future__ import annotations

from tf_ipu_shim.configuration import arguments, table
from tf_ipu_shim.machine.environment import engine_options, flags, sdk_environment
from tf_ipu_shim.machine.environment.effects import OptionEffect

IPU_CONFIG, POPLAR_FLAGS, ENGINE_OPTIONS = "`IPUConfig`", "`TF_POPLAR_FLAGS`", "`POPLAR_ENGINE_OPTIONS`"
SDK_ENVIRONMENT = "other environment variables of the SDK"


def sections() -> dict[str, tuple[OptionEffect, ...]]:
    """Returns all entries by section: the configuration, flags, engine options, variables, and the arguments of calls.

    Example:
        >>> [entry.effect for entry in sections()[IPU_CONFIG] if entry.name == "selection_order"]
        ['changes devices']
    """
    configuration = tuple(
        OptionEffect(name=option.path, effect=option.effect, meaning=option.meaning) for option in table.OPTIONS
    )
    return {
        IPU_CONFIG: configuration,
        POPLAR_FLAGS: flags.effects(),
        ENGINE_OPTIONS: engine_options.effects(),
        SDK_ENVIRONMENT: sdk_environment.effects(),
        **{call.heading: arguments.effects(name) for name, call in arguments.CALLS.items()},
    }
