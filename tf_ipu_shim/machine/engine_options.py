"""`POPLAR_ENGINE_OPTIONS`: options from outside that override the program's own."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping

from tf_ipu_shim.machine.effects import MEMORY, RECORDED, OptionEffect

ENVIRONMENT_VARIABLE = "POPLAR_ENGINE_OPTIONS"

_REPORTS = "Poplar's own report, for which `memory_report()` stands here"
_NO_CODE = "about Poplar's code for the IPU, of which there is none here"
_TRANSFERS = "how data travel between host and IPU, which share their memory here"
_ROUNDING = "arithmetic here is the CPU's: it neither stops at exceptions nor rounds stochastically"
_UNKNOWN = "Poplar's full list is not published: any option is taken, and the others change nothing here"

ALLOW_OUT_OF_MEMORY = "debug.allowOutOfMemory"
EFFECTIVE = {ALLOW_OUT_OF_MEMORY: (MEMORY, "a program that does not fit runs to its report")}
_WITHOUT_EFFECT = {
    "autoReport.all": _REPORTS,
    "autoReport.directory": _REPORTS,
    "autoReport.executionProfileProgramRunCount": _REPORTS,
    "autoReport.outputExecutionProfile": _REPORTS,
    "autoReport.outputGraphProfile": _REPORTS,
    "autoReport.outputLoweredVars": _REPORTS,
    "debug.computeInstrumentationLevel": _REPORTS,
    "debug.floatPointOpException": _ROUNDING,
    "debug.instrument": _REPORTS,
    "debug.instrumentCompute": _REPORTS,
    "debug.instrumentControlFlow": _REPORTS,
    "debug.instrumentExternalExchange": _REPORTS,
    "debug.nanOverflowMode": _ROUNDING,
    "debug.outputAllSymbols": _NO_CODE,
    "debug.retainDebugInformation": _NO_CODE,
    "debug.runtimeVerify": _NO_CODE,
    "debug.trace": _NO_CODE,
    "exchange.enablePrefetch": _NO_CODE,
    "exchange.multicastPolicy": _NO_CODE,
    "exchange.streamBufferOverlap": _NO_CODE,
    "opt.enableInlining": _NO_CODE,
    "opt.maxCompilationThreads": _NO_CODE,
    "prng.enableStochasticRounding": _ROUNDING,
    "prng.seed": _ROUNDING,
    "profiler.includeCycleEstimates": _REPORTS,
    "streamCallbacks.maxLookahead": _TRANSFERS,
    "target.deterministicWorkers": _NO_CODE,
    "target.firstRuntimeReplica": _NO_CODE,
    "target.numberRuntimeReplica": _NO_CODE,
    "target.saveArchive": _NO_CODE,
    "target.syncReplicasIndependently": _NO_CODE,
}
KNOWN = frozenset((*EFFECTIVE, *_WITHOUT_EFFECT))
"""The options that were seen in use. Poplar's full list is not published, so others are passed on too."""


def parse(text: str) -> dict[str, str]:
    """Reads a JSON object of engine options.

    Args:
        text: Such as `{"debug.allowOutOfMemory": "true"}`. Numbers and booleans count as the text they are written as.

    Returns:
        Values by option name, all text, in the order given.

    Raises:
        ValueError: if it is no JSON object, or a value is none of these.

    Source: docs/facts.md, section "POPLAR_ENGINE_OPTIONS".

    Example:
        >>> parse('{"debug.allowOutOfMemory": "true"}')
        {'debug.allowOutOfMemory': 'true'}
    """
    if not text.strip():
        return {}
    advice = 'Write a JSON object of texts, as in {"debug.allowOutOfMemory": "true"}.'
    try:
        options = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except ValueError as error:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is {text!r}, which is not JSON: {error}. {advice}") from None
    if not isinstance(options, dict):
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is {text!r}, which is not a JSON object. {advice}")
    for name, value in options.items():
        if isinstance(value, bool):
            options[name] = "true" if value else "false"
        elif not isinstance(value, str):
            raise ValueError(f"{ENVIRONMENT_VARIABLE} gives {name!r} the value {json.dumps(value)}. {advice}")
    return options


def current() -> dict[str, str]:
    """The options in `POPLAR_ENGINE_OPTIONS` as it is now.

    Raises:
        ValueError: as `parse` does.

    Example:
        >>> current()
        {}
    """
    return parse(os.environ.get(ENVIRONMENT_VARIABLE, ""))


def merged(program: Mapping[str, str]) -> dict[str, str]:
    """The options a program is compiled with: its own, overridden by the environment's.

    Args:
        program: The program's options, `IPUConfig.compilation_poplar_options`.

    Raises:
        ValueError: as `parse` does.

    Example:
        >>> merged({"debug.trace": "true"})
        {'debug.trace': 'true'}
    """
    return {**program, **current()}


def likely_misspelt(options: Mapping[str, str]) -> dict[str, str]:
    """Options that nobody is known to use, with the known one that is spelt nearly the same.

    Example:
        >>> likely_misspelt({"debug.allowOutofMemory": "true"})
        {'debug.allowOutofMemory': 'debug.allowOutOfMemory'}
    """
    by_lower = {name.lower(): name for name in KNOWN}
    found = {}
    for name in options:
        if name not in KNOWN:
            near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.9)
            if near:
                found[name] = by_lower[near[0]]
    return found


def effects() -> tuple[OptionEffect, ...]:
    """What each engine option changes here; the last row is for those that nobody was seen to use."""
    effective = [OptionEffect(name=name, effect=effect, what=what) for name, (effect, what) in EFFECTIVE.items()]
    recorded = {**_WITHOUT_EFFECT, "any other": _UNKNOWN}
    return (*effective, *(OptionEffect(name=name, effect=RECORDED, what=why) for name, why in recorded.items()))


def without_effect(options: Mapping[str, str]) -> dict[str, str]:
    """Those of some engine options that change nothing here.

    Example:
        >>> without_effect({"debug.allowOutOfMemory": "true", "debug.trace": "true"})
        {'debug.trace': 'true'}
    """
    return {name: value for name, value in options.items() if name not in EFFECTIVE}
