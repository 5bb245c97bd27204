"""Plans the memory of a lowered program and raises the out-of-memory error if it does not fit."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from tensorflow.compat.v2 import errors

from tf_ipu_shim import sdk
from tf_ipu_shim.compiler.checks.diagnostics import display_name, program_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.cycle_model import with_library_and_code
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.environment import engine_options, memory_setting
from tf_ipu_shim.machine.memory import Block, IpuPlan, MemoryPlan, Verdict, close_text, out_of_memory_text, plan_of
from tf_ipu_shim.memory_model import bug_report
from tf_ipu_shim.memory_model.advice.accumulation import accumulate
from tf_ipu_shim.memory_model.advice.recommendations import recommend
from tf_ipu_shim.memory_model.advice.scenarios import Lower, Scenario
from tf_ipu_shim.memory_model.computations.compute_set_names import ComputeSetNames
from tf_ipu_shim.memory_model.computations.planner_options import planner_options_of
from tf_ipu_shim.memory_model.computations.work import ProgramWork
from tf_ipu_shim.memory_model.hlo.compiler_ir import ConversionError
from tf_ipu_shim.memory_model.shapes.shape_inference import ShapeInferenceError
from tf_ipu_shim.memory_model.variables.io_tiles import io_tiles_of
from tf_ipu_shim.memory_model.variables.mapped_tensors import MappedTensor, MappedTensors
from tf_ipu_shim.memory_model.variables.storage import read_storage_options
from tf_ipu_shim.memory_model.walk.analysis_options import AnalysisOptions
from tf_ipu_shim.memory_model.walk.hlo_walk import mark_activations
from tf_ipu_shim.memory_model.walk.memory_walk import MemoryAnalyzer
from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.runtime import captured_programs, log, plans

if TYPE_CHECKING:
    from tf_ipu_shim.runtime.device import IpuDevice

UserLine = Callable[[str, str], str | None]

# A copy with the host, or an exchange between IPUs: it has the line of what it moves.
_COPY_NAME = re.compile(r"(?:copy|exchange) of (.+?)(?: and \d+ more)?(?: (?:from|to) the host)?")

# Steps. Finding what saves most takes 0.3 ms a step; BERT-Base's training has 10,700.
_QUICKLY_PLANNED = 1000

# Of a tile's memory. With fewer tensors, code and library temporaries are planned only if asked for: it takes time.
_LARGE_SHARE = 0.5


class PlanDetails(NamedTuple):
    """The inputs of a plan.

    Args:
        blocks: the program of each IPU of the first replica.
        line_of: returns the user's line for an op.
        tensors: the tensors that the program makes, if compute sets have names.
        unconverted: XLA's errors for the XLA programs that it did not convert.
    """

    blocks: Mapping[int, Block]
    line_of: Callable[[str], str | None]
    tensors: Sequence[MappedTensor] = ()
    unconverted: Mapping[str, str] = MappingProxyType({})


class PlannedMemory(NamedTuple):
    """The memory plan of a program; None if a bug of this package kept it from being planned."""

    plan: MemoryPlan | None
    work: ProgramWork
    details: PlanDetails


def enabled() -> bool:
    """Returns whether programs are planned: unless `TF_IPU_SHIM_MEMORY_PLAN` is `off`."""
    return memory_setting.current() != memory_setting.OFF


def includes_library_calls() -> bool:
    """Returns whether reports include library temporaries and code: `TF_IPU_SHIM_MEMORY_PLAN` is `calls`."""
    return memory_setting.current() == memory_setting.CALLS


def plan_memory(
    request: ProgramRequest,
    program: LoweredProgram,
    device: IpuDevice,
    user_line: UserLine | None = None,
    names: ComputeSetNames | None = None,
    lower: Lower | None = None,
) -> PlannedMemory:
    """Computes how much memory a program needs on each IPU, before it runs.

    A program that can run is not refused because its memory is unknown. Its launch reports TensorFlow's errors, and a
    bug of this package becomes a warning with a report.
    """

    options = dataclasses.replace(
        _options_of(request, program, device), planner_options=planner_options_of(device.options, request), modules={}
    )

    def analyze(counted: Callable[[MemoryAnalyzer], None], names: ComputeSetNames | None) -> MemoryAnalyzer:
        tensors = MappedTensors() if names is not None else None
        analyzer = MemoryAnalyzer(request, program, dataclasses.replace(options, names=names, tensors=tensors))
        counted(analyzer)
        analyzer.put_on_io_tiles(io_tiles_of(device.options), device.chip)
        return analyzer

    def plan(counted: Callable[[MemoryAnalyzer], None]) -> tuple[MemoryPlan, ProgramWork, PlanDetails]:
        analyzer = analyze(counted, names)
        line_of = _lines(request, analyzer, user_line)
        planned = _plan_of(request, program, device, analyzer, line_of)
        planned = dataclasses.replace(planned, coarse=_coarse(analyzer, user_line))
        tensors = analyzer.tensors.rows if analyzer.tensors is not None else ()
        return planned, analyzer.work, PlanDetails(analyzer.blocks, line_of, tensors, analyzer.unconverted)

    try:
        planned, work, details = plan(MemoryAnalyzer.run)
        if names is None and planned.fits and _is_large(planned):
            blocks = analyze(MemoryAnalyzer.run, ComputeSetNames()).blocks
            planned = _with_code(planned, blocks, device.chip)
        if not planned.fits and _wants_recommendations(device, details.blocks.values()):
            planned = _with_recommendations(request, program, device, options, planned, lower, user_line)
        return PlannedMemory(planned, work, details)
    except (ConversionError, ShapeInferenceError) as error:
        reason = str(error)
    except Exception as error:
        bug_report.warn(request, error, "for its variables only")
        reason = f"{type(error).__name__}: {error}"
    try:
        return PlannedMemory(*plan(lambda analyzer: analyzer.variables_only(reason)))
    except Exception as error:
        bug_report.warn(request, error, "not at all")
        return PlannedMemory(None, ProgramWork(), PlanDetails({}, _no_line))


def _is_large(plan: MemoryPlan) -> bool:
    """Returns whether code and library temporaries could make a program too large."""
    return any(ipu.max_tile_bytes > _LARGE_SHARE * ipu.bytes_per_tile for ipu in plan.ipus)


def _with_code(plan: MemoryPlan, blocks: Mapping[int, Block], chip: ChipSpec) -> MemoryPlan:
    """Returns a plan with code and library temporaries, from the first replica's blocks with computations."""
    detailed = [with_library_and_code(ipu, blocks[ipu.ipu], chip) for ipu in plan.ipus[: len(blocks)]]
    ipus = (dataclasses.replace(one, ipu=ipu.ipu) for ipu, one in zip(plan.ipus, itertools.cycle(detailed)))
    return dataclasses.replace(plan, ipus=tuple(ipus))


def _options_of(request: ProgramRequest, program: LoweredProgram, device: IpuDevice) -> AnalysisOptions:
    """Returns the analysis options from a device's configuration."""
    return AnalysisOptions(
        storage=read_storage_options(request.library, device.options, program.replicas, device.has_remote_buffers),
        post_order=device.options.speed_size_config.scheduler_selection == config_pb2.POST_ORDER,
    )


def _plan_of(
    request: ProgramRequest,
    program: LoweredProgram,
    device: IpuDevice,
    analyzer: MemoryAnalyzer,
    line_of: Callable[[str], str | None],
) -> MemoryPlan:
    for block in analyzer.blocks.values():
        mark_activations(block)
    return MemoryPlan(
        program=program_name(request.function, request.name),
        device=device.name,
        chip=device.chip.title,
        ipus=tuple(_ipu_plan(ipu, block, device, analyzer, line_of) for ipu, block in sorted(analyzer.blocks.items())),
        variables=analyzer.variables,
        exchanges=analyzer.exchanges,
        coarse=tuple(analyzer.coarse.items()),
        shard_ipus=(program.shard_chips,),
    ).replicated(program.replicas, program.shards)


def _ipu_plan(
    ipu: int, block: Block, device: IpuDevice, analyzer: MemoryAnalyzer, line_of: Callable[[str], str | None]
) -> IpuPlan:
    """Returns an IPU's plan, with code and library temporaries if the program's computations are known."""
    planned = plan_of(ipu, block, device.chip, line_of, analyzer.remote.get(ipu))
    if analyzer.names is None:
        return planned
    return with_library_and_code(planned, block, device.chip)


def _coarse(analyzer: MemoryAnalyzer, user_line: UserLine | None) -> tuple[tuple[str, str], ...]:
    """Returns the parts that were only planned coarsely, with function and source line."""
    named: dict[str, str] = {}
    for function, reason in analyzer.coarse.items():
        scope = analyzer.scope_of(function)
        nodes = analyzer.library[function].node_def
        lines = (user_line(scope, node.name) for node in nodes) if user_line is not None else ()
        line = next(filter(None, lines), None)
        named.setdefault(display_name(scope) + (f", from {line}" if line else ""), reason)
    return tuple(named.items())


def _with_recommendations(
    request: ProgramRequest,
    program: LoweredProgram,
    device: IpuDevice,
    options: AnalysisOptions,
    plan: MemoryPlan,
    lower: Lower | None,
    user_line: UserLine | None,
) -> MemoryPlan:
    """Returns a plan that does not fit with recommendations."""

    def plan_with(change: Scenario) -> MemoryPlan:
        changed = program
        if change.request is not request:
            changed = lower(change.request, change.ipus) if lower is not None else program
        changed_options = dataclasses.replace(options, storage=change.storage, sizes=change.sizes)
        analyzer = MemoryAnalyzer(change.request, changed, changed_options)
        analyzer.run()
        for block in analyzer.blocks.values() if change.accumulates else ():
            accumulate(block, keeps=not change.request.is_keras)
        analyzer.put_on_io_tiles(io_tiles_of(device.options), device.chip)
        return _plan_of(change.request, changed, device, analyzer, _no_line)

    try:
        analyzer = MemoryAnalyzer(request, program, options)
        analyzer.run()
        return dataclasses.replace(
            plan, savings=recommend(request, plan, analyzer, plan_with, _lines(request, analyzer, user_line))
        )
    except Exception as error:
        bug_report.warn(request, error, "without what would save most")
        return plan


def store_plan(request: ProgramRequest, device: IpuDevice, plan: MemoryPlan | None, cache: str = "") -> None:
    """Stores a program's plan, if programs are planned, and refuses the program if it does not fit.

    Source: docs/reference/facts.md, section "Out of memory".
    """
    if plan is None or not enabled():
        return
    is_refused = not plan.fits and not _may_exceed_memory(device)
    program = program_name(request.function, request.name)
    plan = dataclasses.replace(plan, program=program, device=device.name, cache=cache)
    plans.record(device, (request.name, request.function, tuple(request.arg_shapes)), plan)
    if plan.verdict is Verdict.CLOSE:
        log.warning(close_text(plan))
    if is_refused:
        raise errors.InternalError(None, None, out_of_memory_text(plan, sdk.current(), request.is_keras))


def _wants_recommendations(device: IpuDevice, blocks: Iterable[Block]) -> bool:
    """Returns whether computing recommendations is worthwhile.

    Not if only compilation profiling lets a program continue, nor if the program is large and only a report would use
    it: planning each action takes as long as planning the program.
    """
    if captured_programs.active() or not _may_exceed_memory(device):
        return True
    is_large = sum(map(_steps, blocks)) > _QUICKLY_PLANNED
    return not device.options.profiling.enable_compilation_trace and not is_large


def _steps(block: Block) -> int:
    return len(block.steps) + sum(_steps(inner) for step in block.steps for inner in step.inside)


def _may_exceed_memory(device: IpuDevice) -> bool:
    # Graphcore's driver sets the option itself where compilation reports are asked for.
    if device.options.profiling.enable_compilation_trace or captured_programs.active():
        return True
    return engine_options.is_enabled(device.engine_options, engine_options.ALLOW_OUT_OF_MEMORY)


def _no_line(_: str) -> None:
    return None


def _lines(
    request: ProgramRequest, analyzer: MemoryAnalyzer, user_line: UserLine | None
) -> Callable[[str], str | None]:
    @functools.cache
    def functions() -> dict[str, str]:
        """The traced function of each op outside XLA programs, such as feeds and collectives."""
        return {node.name: name for name, function in request.library.items() for node in function.node_def}

    def line_of(name: str) -> str | None:
        if user_line is None:
            return None
        moved = _COPY_NAME.fullmatch(name)
        name = name if moved is None else moved[1]
        function = analyzer.scopes.get(name) or functions().get(name, request.function)
        return user_line(function, name)

    return line_of
