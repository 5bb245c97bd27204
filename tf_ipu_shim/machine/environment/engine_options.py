"""Reads `POPLAR_ENGINE_OPTIONS`, which overrides a program's own engine options."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping

from tf_ipu_shim import data_files, spelling
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import RECORDED, OptionEffect

ENVIRONMENT_VARIABLE = "POPLAR_ENGINE_OPTIONS"

_UNKNOWN = (
    "any `group.option` is accepted, as releases of Poplar differ in their options; a misspelt one is an error of the "
    "program"
)

ALLOW_OUT_OF_MEMORY = "debug.allowOutOfMemory"
INVALID_OPERATIONS = "debug.floatPointOpException"
OVERFLOWS = "debug.nanOverflowException"
NAN_ON_OVERFLOW = "debug.nanOverflowMode"
STOCHASTIC_ROUNDING = "prng.enableStochasticRounding"
OLD_STOCHASTIC_ROUNDING = "prng.enable"
REPORT_ALL = "autoReport.all"
REPORT_DIRECTORY = "autoReport.directory"
REPORT_RUNS = "autoReport.executionProfileProgramRunCount"
REPORT_EXECUTION = "autoReport.outputExecutionProfile"
REPORT_GRAPH = "autoReport.outputGraphProfile"


@functools.cache
def rows() -> tuple[dict[str, str], ...]:
    """Returns the table of engine options.

    An option's `effect` and `meaning` are those of TensorFlow programs. `without_effect_in_poplar_programs` is empty
    if the option has an effect in C++ programs.
    """
    return tuple(data_files.rows(__file__, "engine_options.csv"))


@functools.cache
def known() -> dict[str, OptionEffect]:
    """Returns the effect of each engine option by name."""
    return {
        row["option"]: OptionEffect(name=row["option"], effect=row["effect"], meaning=reasons.fill(row["meaning"]))
        for row in rows()
    }


def is_effective(name: str) -> bool:
    """Returns whether an engine option has an effect.

    Example:
        >>> is_effective("debug.allowOutOfMemory"), is_effective("debug.trace")
        (True, False)
    """
    return name in known() and known()[name].effect != RECORDED


def parse(
    text: str, variable: str = ENVIRONMENT_VARIABLE, example: str = '{"debug.allowOutOfMemory": "true"}'
) -> dict[str, str]:
    """Reads the JSON object of options that a variable holds.

    Source: docs/reference/facts.md, section "POPLAR_ENGINE_OPTIONS".

    Example:
        >>> parse('{"debug.allowOutOfMemory": "true"}')
        {'debug.allowOutOfMemory': 'true'}
    """
    if not text.strip():
        return {}
    advice = f"Write a JSON object of strings, as in {example}."
    try:
        options = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except ValueError as error:
        raise ValueError(f"{variable} is {text!r}, which is not JSON: {error}. {advice}") from None
    except RecursionError:
        raise ValueError(f"{variable} is nested too deeply: {text[:60]!r}... {advice}") from None
    if not isinstance(options, dict):
        raise ValueError(f"{variable} is {text!r}, which is not a JSON object. {advice}")
    for name, value in options.items():
        if isinstance(value, bool):
            options[name] = "true" if value else "false"
        elif not isinstance(value, str):
            raise ValueError(f"{variable} gives {name!r} the value {json.dumps(value)}; expected a string. {advice}")
    return options


def current() -> dict[str, str]:
    """Returns the current options in `POPLAR_ENGINE_OPTIONS`.

    Example:
        >>> current()
        {}
    """
    return parse(os.environ.get(ENVIRONMENT_VARIABLE, ""))


def merged(program: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of a program's compilation: the program's, overridden by the environment's.

    Example:
        >>> merged({"debug.trace": "true"})
        {'debug.trace': 'true'}
    """
    return {**program, **current()}


def is_enabled(options: Mapping[str, str], name: str) -> bool:
    """Returns whether an option that is true or false is true.

    Example:
        >>> is_enabled({"debug.allowOutOfMemory": "True"}, ALLOW_OUT_OF_MEMORY)
        True
    """
    return options.get(name, "").lower() == "true"


def unrecognised(options: Iterable[str]) -> dict[str, str]:
    """Returns the options that no release of Poplar has, each with Poplar's error: misspelt, or without a group.

    Example:
        >>> unrecognised(["debug.trace", "debug.trase", "some.other"])["debug.trase"]
        "Unrecognised option 'debug.trase' of engines. Did you mean 'debug.trace'? If not, leave it out."
    """
    messages = {}
    for name in options:
        meant = None if name in known() else _nearest(name)
        if meant or not all(name.partition(".")):
            hint = f"Did you mean '{meant}'?" if meant else "Use the name of one, such as 'debug.allowOutOfMemory'."
            messages[name] = f"Unrecognised option '{name}' of engines. {hint} If not, leave it out."
    return messages


def _nearest(name: str) -> str | None:
    """Returns the option of nearly the same spelling, its group included or not."""
    forms = (spelling.nearest(name.lower(), sorted(known()), 0.9, form) for form in (str.lower, _without_group))
    return next(filter(None, forms), None)


def _without_group(name: str) -> str:
    return name.rpartition(".")[2].lower()


def effects() -> tuple[OptionEffect, ...]:
    """Returns the effect of each engine option; the last row is for unknown ones."""
    acting = [option for option in known().values() if is_effective(option.name)]
    recorded = [option for option in known().values() if not is_effective(option.name)]
    return (*acting, *recorded, OptionEffect(name="any other", effect=RECORDED, meaning=_UNKNOWN))


def without_effect(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the engine options that have no effect.

    Example:
        >>> without_effect({"debug.allowOutOfMemory": "true", "debug.trace": "true"})
        {'debug.trace': 'true'}
    """
    return {name: value for name, value in options.items() if not is_effective(name)}
