"""`POPLAR_ENGINE_OPTIONS`: options from outside that override the program's own."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping

ENVIRONMENT_VARIABLE = "POPLAR_ENGINE_OPTIONS"

KNOWN = frozenset(
    (
        "autoReport.all",
        "autoReport.directory",
        "autoReport.executionProfileProgramRunCount",
        "autoReport.outputExecutionProfile",
        "autoReport.outputGraphProfile",
        "autoReport.outputLoweredVars",
        "debug.allowOutOfMemory",
        "debug.computeInstrumentationLevel",
        "debug.floatPointOpException",
        "debug.instrument",
        "debug.instrumentCompute",
        "debug.instrumentControlFlow",
        "debug.instrumentExternalExchange",
        "debug.nanOverflowMode",
        "debug.outputAllSymbols",
        "debug.retainDebugInformation",
        "debug.runtimeVerify",
        "debug.trace",
        "exchange.enablePrefetch",
        "exchange.multicastPolicy",
        "exchange.streamBufferOverlap",
        "opt.enableInlining",
        "opt.maxCompilationThreads",
        "prng.enableStochasticRounding",
        "prng.seed",
        "profiler.includeCycleEstimates",
        "streamCallbacks.maxLookahead",
        "target.deterministicWorkers",
        "target.firstRuntimeReplica",
        "target.numberRuntimeReplica",
        "target.saveArchive",
        "target.syncReplicasIndependently",
    )
)
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
