"""Lowers a program for a device, plans its memory, chooses its execution mode and writes its profile."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from tf_ipu_shim.compiler.checks import other_devices
from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.ir.reachable import reached_functions
from tf_ipu_shim.compiler.kernels import stochastic_rounding
from tf_ipu_shim.compiler.kernels.execution_mode import (
    Execution,
    requested_execution,
    require_kernels,
    resolve_execution,
)
from tf_ipu_shim.compiler.kernels.kernels import KernelOptions, to_kernels, without_grouped_kernel
from tf_ipu_shim.compiler.lower import lower, prepare_for_xla
from tf_ipu_shim.compiler.lowering_state import LoweringOptions, XlaState
from tf_ipu_shim.compiler.xla_semantics import kernels_only
from tf_ipu_shim.compiler.xla_semantics.model_float16 import compute_in_float32
from tf_ipu_shim.driver import capture, dumps, event_reports, profiles, uncompilable
from tf_ipu_shim.driver.background import BackgroundTask
from tf_ipu_shim.driver.compilation import EventDetails, module_name
from tf_ipu_shim.driver.execution_choice import choose, is_short
from tf_ipu_shim.driver.profiles import RunLog
from tf_ipu_shim.driver.program_requests import Job
from tf_ipu_shim.machine.environment.execution_mode import AUTO, KERNELS, XLA
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.memory_model.computations.compute_set_names import ComputeSetNames
from tf_ipu_shim.memory_model.computations.planner_options import planner_options_of
from tf_ipu_shim.memory_model.hlo.compiler_ir import with_background_work
from tf_ipu_shim.memory_model.memory_plan import PlanDetails, PlannedMemory
from tf_ipu_shim.memory_model.variables.io_tiles import io_tiles_of
from tf_ipu_shim.memory_model.variables.tensor_map import tensor_map_json
from tf_ipu_shim.memory_model.walk import user_op_builds
from tf_ipu_shim.plugin.library import APPLICATION_DEVICES
from tf_ipu_shim.runtime import captured_programs
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.runtime.jobs import instances
from tf_ipu_shim.runtime.jobs.instances import Share
from tf_ipu_shim.runtime.stochastic_rounding import Rounding
from tf_ipu_shim.tf_private.protos import graph_pb2, node_def_pb2

_DYNAMIC = "has a size that follows from values"


class PreparedProgram(NamedTuple):
    """A program that is ready to run.

    Args:
        counted: the program that Graphcore would have compiled, as XLA launches.
        runs: the program that runs: the former, or the same in mode `kernels`.
        plan: its memory; None if it is not requested.
    """

    counted: LoweredProgram
    by_xla: LoweredProgram
    runs: LoweredProgram
    plan: MemoryPlan | None
    run_log: RunLog
    details: EventDetails = EventDetails()


class ProfiledProgram(NamedTuple):
    """A program that already runs op by op, as it would be if compiled.

    Args:
        program: as XLA launches, which do not run.
    """

    program: LoweredProgram
    run_log: RunLog
    details: EventDetails


def lower_for_device(job: Job, compiles: bool = True, runs: bool = True) -> PreparedProgram:
    """Lowers a program, plans its memory and chooses its execution mode."""
    return _Lowering(job, compiles, runs).run()


def profile_uncompiled(job: Job) -> ProfiledProgram:
    """Writes the profile of ops that already run one by one, as if they were compiled."""
    return _Lowering(job).profile()


class _Form(NamedTuple):
    """The form in which a program runs.

    Args:
        launches: the program as XLA launches.
        runs: the program as it runs: the same, or in mode `kernels` other functions.
    """

    launches: LoweredProgram
    runs: LoweredProgram
    execution: Execution


class _Lowering:
    """Lowers and plans one program."""

    def __init__(self, job: Job, compiles: bool = True, runs: bool = True) -> None:
        request, device = job.request, job.device
        self._library, self._call, self._device, self._runs = job.library, job.call, device, runs
        reached = reached_functions(request.library, request.function)
        is_rounded = not request.single_op and stochastic_rounding.is_rounded(request, bool(device.rounding))
        if is_rounded and Rounding.COMMON_ONLY in device.rounding and self._has_replicas(device):
            request = stochastic_rounding.round_common_values_only(request, reached)
        self._request = request
        self._target = user_op_builds.target_of(device, request.function)
        # An IPU Model computes float16 in float32, unless each op's results are checked.
        is_widened = device.on_model and not device.float_checks and not is_rounded
        self._run_request = compute_in_float32(request, reached) if is_widened else request
        self._diagnostics = Diagnostics(job.call)
        has_copies = self._run_request is not request
        only_kernels = kernels_only.describe_kernel_only_ops(request, reached, self._diagnostics.describe, has_copies)
        self._is_required = bool(only_kernels)
        self._asked = requested_execution(device, is_rounded, only_kernels)
        self._profile = profiles.requested_settings(device) if compiles else ()
        self._has_dumps = compiles and dumps.is_requested()
        self._has_events = device.options.profiling.enable_ipu_trace_events
        self._has_reports = compiles and event_reports.is_requested(device.options.profiling)

    def run(self) -> PreparedProgram:
        """Lowers, plans and chooses the execution mode."""
        planner_options_of(
            self._device.options, self._request
        )  # refuses what Poplar would, also where no memory is planned
        other_devices.warn_of_other_devices(self._diagnostics, self._request)
        program = self._lower(chunks=self._asked.mode != KERNELS)  # kernels gain nothing from chunks
        user_op_builds.build(program, self._diagnostics.describe)
        request, device = self._request, self._device
        wants_names = bool(self._profile) or self._has_events or self._has_dumps or captured_programs.active()
        names = ComputeSetNames() if wants_names or memory_plan.includes_library_calls() else None
        (plan, work, details), (counted, runs, execution) = self._plan(program, names)
        by_xla = counted
        if execution.mode != KERNELS:
            by_xla = runs = self._prepare_for_xla(self._lower_as_run(runs))
            uncompilable.record_origins(runs)
        if plan is not None:
            plan = dataclasses.replace(plan, mode=execution.mode, mode_reason=execution.reason)
        if plan is not None and captured_programs.active():
            capture.add(request, program, device, plan, details, work)
        if self._has_dumps:
            dumps.write_dumps(request, program, device, details)
        return PreparedProgram(counted, by_xla, runs, plan, *self._write_profile(program, names, plan, details))

    def _plan(self, program: LoweredProgram, names: ComputeSetNames | None) -> tuple[PlannedMemory, _Form]:
        """Plans the memory and chooses the execution mode."""
        with BackgroundTask(lambda: self._to_kernels(program, on_one_thread=False)) as kernels:
            # Nearly all programs of that size run in mode `kernels`, and none of them is short.
            with with_background_work(kernels.begin) if self._asked.mode != XLA else contextlib.nullcontext():
                planned = memory_plan.plan_memory(
                    self._request, program, self._device, self._diagnostics.user_line, names, self._lower_variant
                )
            uncompilable.refuse(self._diagnostics, program, self._unexplained_errors(planned.details.unconverted))
            work = planned.work
            execution = choose(work) if self._asked.mode == AUTO else self._asked
            if work.dynamic:
                execution = require_kernels(execution, f"{work.dynamic}, which {_DYNAMIC}")
            if execution.mode != KERNELS:
                return planned, _Form(program, program, execution)
            plan = planned.plan
            unknown = {program.node.name: "its memory could not be counted"} if plan is None else dict(plan.coarse)
            launched = without_grouped_kernel(work.grouped_convolutions)
            if is_short(work) or launched:
                kernels_program = self._to_kernels(program, is_short(work), launched)
            else:
                kernels_program = kernels.result()
            return planned, self._resolve_mode(program, kernels_program, execution, unknown)

    def _unexplained_errors(self, unconverted: Mapping[str, str]) -> Mapping[str, str]:
        """Returns XLA's errors, except about ops that always run in mode `kernels`."""
        if not self._is_required:
            return unconverted
        return {
            name: message
            for name, message in unconverted.items()
            if not kernels_only.explains_error(self._request, message)
        }

    def _write_profile(
        self, program: LoweredProgram, names: ComputeSetNames | None, plan: MemoryPlan | None, details: PlanDetails
    ) -> tuple[RunLog, EventDetails]:
        """Writes the profile; returns the program's data for trace events."""
        request, device = self._request, self._device
        is_profiled = bool(self._profile) or self._has_reports
        profile = profiles.build(request, program, device, plan, details) if is_profiled else None
        run_log = RunLog() if profile is None else profiles.write_profile(profile, self._profile)
        if not self._has_events or names is None:
            return run_log, EventDetails()
        module, io_tiles = module_name(request.function), io_tiles_of(device.options)
        tensor_map = tensor_map_json(module, request, program, device.chip, details.tensors, io_tiles, details.blocks)
        reports = event_reports.EventReports()
        if profile is not None and self._has_reports:
            reports = event_reports.reports_of(profile, device.options.profiling)
        return run_log, EventDetails(tensor_map, names.instruction_info(), *reports)

    def _prepare_for_xla(self, program: LoweredProgram) -> LoweredProgram:
        device = self._device
        in_application = device.ordinal in APPLICATION_DEVICES
        return prepare_for_xla(
            XlaState(program, self._diagnostics, self._runs_by_one_dnn, device.on_model, in_application)
        )

    def _runs_by_one_dnn(self, node: node_def_pb2.NodeDef) -> bool:
        return bool(self._library.by_one_dnn(graph_pb2.GraphDef(node=[node]).SerializeToString()))

    def _lower_as_run(self, program: LoweredProgram) -> LoweredProgram:
        """Returns the program with the dtypes that it computes in, which may differ from the planned ones."""
        if self._run_request is self._request:
            return program
        runs = self._lower(chunks=self._asked.mode != KERNELS, request=self._run_request)
        runs.result_shapes = program.result_shapes
        return runs

    def profile(self) -> ProfiledProgram:
        """Lowers and plans only for the profile and trace events."""
        names = ComputeSetNames()
        program = self._lower(chunks=False)
        planned = memory_plan.plan_memory(self._request, program, self._device, self._diagnostics.user_line, names)
        plan = planned.plan
        if plan is not None:
            plan = dataclasses.replace(plan, mode=KERNELS, mode_reason="a session runs these ops one by one")
        return ProfiledProgram(program, *self._write_profile(program, names, plan, planned.details))

    def _lower_variant(self, request: ProgramRequest, ipus: int) -> LoweredProgram:
        """Lowers a variant of the program, which will not run, for a number of IPUs."""
        options = LoweringOptions(num_ipus=ipus, chunks=False, runs=False, share=self._share(), target=self._target)
        return lower(self._library, self._call, request, options)

    @staticmethod
    def _has_replicas(device: IpuDevice) -> bool:
        """Returns whether a program may run as several replicas, here or in other instances."""
        return device.num_ipus > 1 or device.options.multi_replica_process_count > 1

    def _share(self) -> Share:
        return instances.share_of_programs(self._device.options)

    def _lower(self, chunks: bool, request: ProgramRequest | None = None) -> LoweredProgram:
        device = self._device
        group_size = device.options.experimental_distributed_batch_norm_replica_group_size
        options = LoweringOptions(
            num_ipus=device.num_ipus,
            order=device.selection_order,
            chunks=chunks,
            statistics_group=group_size,
            runs=self._runs,
            share=self._share(),
            target=self._target,
        )
        return lower(self._library, self._call, request or self._request, options)

    def _to_kernels(
        self, planned: LoweredProgram, on_one_thread: bool, launched: frozenset[str] = frozenset()
    ) -> tuple[LoweredProgram, LoweredProgram]:
        """Returns a program's launches, and its form in mode `kernels`; the memory plan stays."""
        is_other = planned.has_chunks or self._run_request is not self._request
        launches = self._lower(chunks=False, request=self._run_request) if is_other else planned
        return launches, to_kernels(
            self._library,
            self._call,
            launches,
            self._run_request.library,
            KernelOptions(
                self._diagnostics.describe,
                describes_all=self._asked.is_checked,
                refuses=self._asked.mode == KERNELS and not self._asked.is_required,
                on_one_thread=on_one_thread,
                launched=launched,
            ),
        )

    def _resolve_mode(
        self,
        planned: LoweredProgram,
        lowered: tuple[LoweredProgram, LoweredProgram],
        execution: Execution,
        unknown: dict[str, str],
    ) -> _Form:
        """Returns launches, executable form and mode; some programs must use XLA after all."""
        launches, runs = lowered
        is_required = self._is_required or execution.is_required
        execution = resolve_execution(execution, runs, unknown, is_required)
        if execution.mode == KERNELS and runs.clusters:
            runs = self._prepare_for_xla(runs)
        elif execution.mode != KERNELS:
            launches = runs = planned if self._asked.mode == AUTO else self._lower(chunks=True)
        launches.result_shapes = runs.result_shapes = planned.result_shapes
        return _Form(launches, runs, execution)
