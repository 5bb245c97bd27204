"""Reads `POPLAR_ENGINE_OPTIONS`, which overrides a program's own engine options."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping

from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import MEMORY, OUTPUT, RECORDED, RESULTS, OptionEffect

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
EFFECTIVE = {
    ALLOW_OUT_OF_MEMORY: (MEMORY, "a program that does not fit runs to its report"),
    INVALID_OPERATIONS: (RESULTS, "the same as `floating_point_behaviour.inv`"),
    OVERFLOWS: (RESULTS, "the same as `floating_point_behaviour.oflo`"),
    NAN_ON_OVERFLOW: (RESULTS, "the same as `floating_point_behaviour.nanoo`"),
    STOCHASTIC_ROUNDING: (RESULTS, "the same as `floating_point_behaviour.esr`"),
    OLD_STOCHASTIC_ROUNDING: (RESULTS, f"the older name of `{STOCHASTIC_ROUNDING}`"),
    REPORT_ALL: (OUTPUT, "each program's profile is written to a separate folder, for `pva`"),
    REPORT_DIRECTORY: (OUTPUT, "where these folders are made; the working directory by default"),
    REPORT_RUNS: (OUTPUT, "how many runs of a program its profile counts; 2 by default"),
    REPORT_EXECUTION: (OUTPUT, "whether a profile counts runs; as `autoReport.all` says by default"),
    REPORT_GRAPH: (OUTPUT, "whether a profile has variables and liveness; as `autoReport.all` says by default"),
}
_NAMES = {
    reasons.REPORTS: (
        "autoReport.outputArchive autoReport.outputDebugInfo autoReport.outputLoweredVars "
        "autoReport.outputSerializedGraph autoReport.streamAtEachRun debug.computeInstrumentationLevel "
        "debug.executionProfile debug.graphReportDestination debug.instrument debug.instrumentCompute "
        "debug.instrumentControlFlow debug.instrumentExternalExchange debug.loweredProgsFile "
        "debug.loweredVarDumpFile debug.profilingTile profiler.blocks.filter profiler.blocks.implicitFlush "
        "profiler.format profiler.includeCycleEstimates profiler.includeFlopEstimates "
        "profiler.perExecutionStreamCopyCycles profiler.programs.filter profiler.replicaToProfile "
        "profiler.useUnstableFormat"
    ),
    reasons.NO_CODE: (
        "debug.branchRecordTile debug.globalExchangeViaDebug debug.logStackSizeAnalysis "
        "debug.outputAllSymbols debug.retainDebugInformation debug.runtimeVerify "
        "debug.supervisorStackSizeInBytes debug.trace debug.traceFile debug.verify "
        "debug.workerStackSizeInBytes device.clearAtomicFlagAfterExchange exchange.multicastPolicy "
        "opt.enableInlining opt.enableMultiAccessCopies opt.enableSwSyncs "
        "opt.internalExchangeOptimisationTarget opt.limitVertexStateToLower256K opt.maxCompilationThreads "
        "opt.maxComputeSetsPerLoweredCopy opt.maxCopyMergeSize opt.maxLinkThreads opt.useAutoloader "
        "target.deterministicWorkers target.extendedMemory target.saveArchive target.saveOutputVertexGraph "
        "target.supervisorStackSizeInBytes target.textSectionSizeInBytes target.workerStackSizeInBytes"
    ),
    reasons.TRANSFERS: (
        "exchange.enablePrefetch exchange.streamBufferOverlap streamCallbacks.maxLookahead "
        "streamCallbacks.multiThreadMode streamCallbacks.numWorkerThreads streamCallbacks.numaAware "
        "target.maxStreamCallbackThreadsPerNumaNode"
    ),
    reasons.LINKS: (
        "target.firstRuntimeReplica target.gatewayMode target.gatewayWriteTogether "
        "target.numberRuntimeReplica target.syncReplicasIndependently"
    ),
    reasons.WAITS: (
        "target.exceptionPollPeriodUs target.hostSyncTimeout target.syncMethod target.syncPollPeriodUs "
        "target.useBufferedCompletions"
    ),
}
_WITHOUT_EFFECT = dict(
    sorted(
        {
            **{name: why for why, names in _NAMES.items() for name in names.split()},
            "prng.seed": "the seed is that of `reset_ipu_seed`",
        }.items()
    )
)
KNOWN = frozenset((*EFFECTIVE, *_WITHOUT_EFFECT))
"""The names that Poplar's own table has, `poplar/target/option_tables.hpp`."""


def parse(text: str) -> dict[str, str]:
    """Reads a JSON object of engine options.

    Source: docs/reference/facts.md, section "POPLAR_ENGINE_OPTIONS".

    Example:
        >>> parse('{"debug.allowOutOfMemory": "true"}')
        {'debug.allowOutOfMemory': 'true'}
    """
    if not text.strip():
        return {}
    advice = 'Write a JSON object of strings, as in {"debug.allowOutOfMemory": "true"}.'
    try:
        options = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except ValueError as error:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is {text!r}, which is not JSON: {error}. {advice}") from None
    except RecursionError:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is nested too deeply: {text[:60]!r}... {advice}") from None
    if not isinstance(options, dict):
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is {text!r}, which is not a JSON object. {advice}")
    for name, value in options.items():
        if isinstance(value, bool):
            options[name] = "true" if value else "false"
        elif not isinstance(value, str):
            raise ValueError(f"{ENVIRONMENT_VARIABLE} gives {name!r} the value {json.dumps(value)}. {advice}")
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
        meant = None if name in KNOWN else _nearest(name)
        if meant or not all(name.partition(".")):
            advice = f"Did you mean '{meant}'?" if meant else "Use the name of one, such as 'debug.allowOutOfMemory'."
            messages[name] = f"Unrecognised option '{name}' of engines. {advice} If not, leave it out."
    return messages


def _nearest(name: str) -> str | None:
    """Returns the option of nearly the same spelling, its group included or not."""
    for part in (str.lower, _without_group):
        known = {part(other): other for other in sorted(KNOWN)}
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.9)
        if near:
            return known[near[0]]
    return None


def _without_group(name: str) -> str:
    return name.rpartition(".")[2].lower()


def effects() -> tuple[OptionEffect, ...]:
    """Returns the effect of each engine option; the last row is for unknown ones."""
    effective = [
        OptionEffect(name=name, effect=effect, meaning=description) for name, (effect, description) in EFFECTIVE.items()
    ]
    recorded = {**_WITHOUT_EFFECT, "any other": _UNKNOWN}
    return (*effective, *(OptionEffect(name=name, effect=RECORDED, meaning=why) for name, why in recorded.items()))


def without_effect(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the engine options that have no effect.

    Example:
        >>> without_effect({"debug.allowOutOfMemory": "true", "debug.trace": "true"})
        {'debug.trace': 'true'}
    """
    return {name: value for name, value in options.items() if name not in EFFECTIVE}
