"""Lists the environment variables of Poplar's libraries and tools that are accepted and have no effect."""

from __future__ import annotations

import os

from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import RECORDED, OptionEffect

_LOG = "logs of Poplar's compiler, which does not run here"
_REASONS = {
    "GCL_LOG_LEVEL": _LOG,
    "POPLAR_LOG_LEVEL": _LOG,
    "POPLIBS_LOG_LEVEL": _LOG,
    "POPLAR_RUNTIME_OPTIONS": reasons.WAITS,
    "PVTI_OPTIONS": "no `.pvti` file: TensorFlow's profiler has the spans (`tf.profiler.experimental.start`), "
    "and a C++ program writes JSON",
    "TF_POPLAR_VLOG_LEVEL": _LOG,
}


def effects() -> tuple[OptionEffect, ...]:
    """Returns the variables, each with the reason why it changes nothing."""
    return tuple(OptionEffect(name=name, effect=RECORDED, meaning=why) for name, why in _REASONS.items())


def set_variables() -> dict[str, str]:
    """The variables that are set in this process, with their values.

    Example:
        >>> os.environ["PVTI_OPTIONS"] = '{"enable": "true"}'
        >>> set_variables()["PVTI_OPTIONS"]
        '{"enable": "true"}'
    """
    return {name: value for name in _REASONS if (value := os.environ.get(name))}
