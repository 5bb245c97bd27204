"""A program as it is lowered for a device: its XLA launches, what runs of the two ways, its memory, its profile."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.kernels import stochastic_rounding
from tf_ipu_shim.compiler.kernels.execution_mode import Execution, requested_execution, resolve_execution
from tf_ipu_shim.compiler.kernels.kernels import to_kernels
from tf_ipu_shim.compiler.loops.interruptible_loops import make_interruptible
from tf_ipu_shim.compiler.lower import lower
from tf_ipu_shim.compiler.passes.assertions import compile_assertions
from tf_ipu_shim.compiler.passes.variable_order import order_variable_accesses
from tf_ipu_shim.compiler.replicas.replicas import Share
from tf_ipu_shim.compiler.xla_semantics import kernels_only
from tf_ipu_shim.compiler.xla_semantics.float16_overflow import saturate_float16
from tf_ipu_shim.compiler.xla_semantics.kernel_results import with_kernel_results
from tf_ipu_shim.compiler.xla_semantics.reassociation_barriers import with_barriers
from tf_ipu_shim.compiler.xla_semantics.slice_updates import disable_fusion
from tf_ipu_shim.driver import capture, dumps, event_reports, other_devices, profiles, uncompilable
from tf_ipu_shim.driver.background import Beside
from tf_ipu_shim.driver.compilation import EventDetails, module_name
from tf_ipu_shim.driver.execution_choice import choose, is_short
from tf_ipu_shim.driver.profiles import RunLog
from tf_ipu_shim.machine.environment.execution_mode import AUTO, KERNELS, XLA
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model import memory_plan
from tf_ipu_shim.memory_model.computations.compute_set_names import ComputeSetNames
from tf_ipu_shim.memory_model.computations.planner_options import planner_options_of
from tf_ipu_shim.memory_model.computations.work import ProgramWork
from tf_ipu_shim.memory_model.hlo.compiler_ir import with_background_work
from tf_ipu_shim.memory_model.memory_plan import Details
from tf_ipu_shim.memory_model.variables.io_tiles import io_tiles_of
from tf_ipu_shim.memory_model.variables.tensor_map import tensor_map_json
from tf_ipu_shim.plugin.library import APPLICATION_DEVICES, Call, Library
from tf_ipu_shim.runtime import captured_programs
from tf_ipu_shim.runtime.device import PRE_COMPILE, IpuDevice
from tf_ipu_shim.runtime.jobs import instances
from tf_ipu_shim.runtime.stochastic_rounding import Rounding


class Lowered(NamedTuple):
    """A program, ready to run.

    Args:
        counted: what Graphcore would have compiled, as XLA launches.
        by_xla: as XLA launches.
        runs: what runs: that, or the same by kernels.
        plan: its memory; None where nobody asks for it.
        run_log: where its runs are written down.
        details: what events tell of it.
    """

    counted: LoweredProgram
    by_xla: LoweredProgram
    runs: LoweredProgram
    plan: MemoryPlan | None
    run_log: RunLog
    details: EventDetails = EventDetails()


class Profiled(NamedTuple):
    """What runs already, as the program that it would be.

    Args:
        program: as XLA launches, which do not run.
        run_log: where its runs are written down.
        details: what events tell of it.
    """

    program: LoweredProgram
    run_log: RunLog
    details: EventDetails


def lowered(
    library: Library,
    call: Call,
    request: ProgramRequest,
    device: IpuDevice,
    compiles: bool = True,
    runs: bool = True,
) -> Lowered:
    """Lowers a program, plans its memory, and settles how it runs.

    Args:
        library: the loaded plugin.
        call: lets the lowering question the TensorFlow runtime.
        request: the traced function and its arguments.
        device: where it runs.
        compiles: whether Graphcore would compile it now; one that it has in its cache gets no profile.
        runs: whether it may run, here or where a file of it goes. Else one of its replicas is enough.
    """
    return _Lowering(library, call, request, device, compiles, runs).run()


def profiled(library: Library, call: Call, request: ProgramRequest, device: IpuDevice) -> Profiled:
    """Has the profile written of what runs already, op by op, as the program that it would be.

    Args:
        library: the loaded plugin.
        call: lets the lowering question the TensorFlow runtime.
        request: the ops as a function.
        device: where they run.
    """
    return _Lowering(library, call, request, device).profile()


class _Planned(NamedTuple):
    """A program with its plan: what it computes, the plan's details, as XLA launches, what runs, and in which way."""

    plan: MemoryPlan | None
    work: ProgramWork
    details: Details
    by_xla: LoweredProgram
    runs: LoweredProgram
    execution: Execution


class _Lowering:
    def __init__(
        self,
        library: Library,
        call: Call,
        request: ProgramRequest,
        device: IpuDevice,
        compiles: bool = True,
        runs: bool = True,
    ) -> None:
        self._library, self._call, self._device, self._runs = library, call, device, runs
        is_rounded = not request.single_op and stochastic_rounding.is_rounded(request, bool(device.rounding))
        if is_rounded and Rounding.COMMON_ONLY in device.rounding and self._has_replicas(device):
            request = stochastic_rounding.round_common_values_only(request)
        self._request = request
        self._diagnostics = Diagnostics(call)
        only_kernels = kernels_only.describe_kernel_only_ops(request, self._diagnostics.describe)
        self._is_required = bool(only_kernels)
        self._asked = requested_execution(device, is_rounded, only_kernels)
        self._profile = profiles.wanted(device) if compiles else ()
        self._has_dumps = compiles and dumps.wanted()
        self._has_events = device.options.profiling.enable_ipu_trace_events
        self._has_reports = compiles and event_reports.wanted(device.options.profiling)
        self._plans = (
            memory_plan.enabled()
            or self._asked.way != XLA
            or bool(self._profile)
            or self._has_events
            or self._has_dumps
            or device.connection == PRE_COMPILE  # where nothing runs, the plan tells the shapes of results
        )

    def run(self) -> Lowered:
        """Lowers, plans and settles."""
        planner_options_of(
            self._device.options, self._request
        )  # refuses what Poplar would, also where no memory is planned
        other_devices.tell(self._diagnostics, self._request)
        program = self._lower(chunks=self._asked.way != KERNELS)  # kernels gain nothing from chunks
        if not self._plans:
            runs = self._with_calls(program)
            uncompilable.remember(runs)
            return Lowered(program, runs, runs, None, RunLog())
        request, device = self._request, self._device
        wants_names = bool(self._profile) or self._has_events or self._has_dumps or captured_programs.active()
        names = ComputeSetNames() if wants_names or memory_plan.with_library_calls() else None
        plan, work, details, by_xla, runs, execution = self._planned(program, names)
        counted = by_xla
        if execution.way != KERNELS:
            by_xla = runs = self._with_calls(runs)
            uncompilable.remember(runs)
        if plan is not None:
            plan = dataclasses.replace(plan, way=execution.way, way_reason=execution.reason)
        if plan is not None and captured_programs.active():
            capture.add(request, program, device, plan, details, work)
        if self._has_dumps:
            dumps.written(request, program, device, details)
        return Lowered(counted, by_xla, runs, plan, *self._told(program, names, plan, details))

    def _planned(self, program: LoweredProgram, names: ComputeSetNames | None) -> _Planned:
        """Plans its memory and settles how it runs."""
        with Beside(lambda: self._kernels(program, on_one_thread=False)) as kernels:
            # Nearly all programs that are large enough for that run by kernels, and none of them is short.
            with with_background_work(kernels.begin) if self._asked.way != XLA else contextlib.nullcontext():
                plan, work, details = memory_plan.plan_memory(
                    self._request, program, self._device, self._diagnostics.user_line, names, self._lower_as
                )
            uncompilable.refuse(self._diagnostics, program, self._unexcused(details.without_form))
            execution = choose(work) if self._asked.way == AUTO else self._asked
            if execution.way != KERNELS:
                return _Planned(plan, work, details, program, program, execution)
            unknown = {program.node.name: "its memory could not be counted"} if plan is None else dict(plan.coarse)
            made = self._kernels(program, on_one_thread=True) if is_short(work) else kernels.result()
            return _Planned(plan, work, details, *self._settled(program, made, execution, unknown))

    def _unexcused(self, without_form: Mapping[str, str]) -> Mapping[str, str]:
        """XLA's errors, without those about ops that run by kernels in every mode."""
        if not self._is_required:
            return without_form
        return {
            name: text for name, text in without_form.items() if not kernels_only.explains_error(self._request, text)
        }

    def _told(
        self, program: LoweredProgram, names: ComputeSetNames | None, plan: MemoryPlan | None, details: Details
    ) -> tuple[RunLog, EventDetails]:
        """Has the profile written, and gives what events tell of the program."""
        request, device = self._request, self._device
        is_profiled = bool(self._profile) or self._has_reports
        profile = profiles.made(request, program, device, plan, details) if is_profiled else None
        run_log = RunLog() if profile is None else profiles.written(profile, self._profile)
        if not self._has_events or names is None:
            return run_log, EventDetails()
        module, io_tiles = module_name(request.function), io_tiles_of(device.options)
        tensor_map = tensor_map_json(module, request, program, device.chip, details.tensors, io_tiles)
        texts = event_reports.Texts()
        if profile is not None and self._has_reports:
            texts = event_reports.texts_of(profile, device.options.profiling)
        return run_log, EventDetails(tensor_map, names.instruction_info(), *texts)

    def _with_calls(self, program: LoweredProgram) -> LoweredProgram:
        """The program with what its launches call of the plugin, and with float16 results as an IPU has them."""
        runs = order_variable_accesses(disable_fusion(with_barriers(with_kernel_results(program))))
        runs = compile_assertions(runs, self._diagnostics.describe)
        if not self._device.on_model:  # which computes on the host
            runs = saturate_float16(runs)
        # An embedded application serves whoever calls it: Ctrl-C does not end it.
        return runs if self._device.ordinal in APPLICATION_DEVICES else make_interruptible(runs)

    def profile(self) -> Profiled:
        """Lowers and plans for the profile and the events alone."""
        names = ComputeSetNames()
        program = self._lower(chunks=False)
        plan, _, details = memory_plan.plan_memory(
            self._request, program, self._device, self._diagnostics.user_line, names
        )
        if plan is not None:
            plan = dataclasses.replace(plan, way=KERNELS, way_reason="a session runs these ops one by one")
        return Profiled(program, *self._told(program, names, plan, details))

    def _lower_as(self, request: ProgramRequest, ipus: int) -> LoweredProgram:
        """Lowers another form of the program, which will not run, for so many IPUs."""
        share = self._share()
        return lower(self._library, self._call, request, ipus, chunks=False, runs=False, share=share)

    @staticmethod
    def _has_replicas(device: IpuDevice) -> bool:
        """Whether a program may run as several replicas, here or in other instances."""
        return device.num_ipus > 1 or device.options.multi_replica_process_count > 1

    def _share(self) -> Share:
        return Share(*instances.share_of_programs(self._device.options))

    def _lower(self, chunks: bool) -> LoweredProgram:
        device = self._device
        group_size = device.options.experimental_distributed_batch_norm_replica_group_size
        return lower(
            self._library,
            self._call,
            self._request,
            device.num_ipus,
            self._plans,
            device.selection_order,
            chunks,
            group_size,
            self._runs,
            self._share(),
        )

    def _kernels(self, planned: LoweredProgram, on_one_thread: bool) -> tuple[LoweredProgram, LoweredProgram]:
        """A program's launches, and what runs by kernels instead. What is planned stays as it is."""
        launches = self._lower(chunks=False) if planned.has_chunks else planned
        return launches, to_kernels(
            launches,
            self._request.library,
            self._diagnostics.describe,
            refuses=self._asked.way == KERNELS and not self._asked.is_required,
            on_one_thread=on_one_thread,
            describes_all=self._asked.is_checked,
        )

    def _settled(
        self,
        planned: LoweredProgram,
        made: tuple[LoweredProgram, LoweredProgram],
        execution: Execution,
        unknown: dict[str, str],
    ) -> tuple[LoweredProgram, LoweredProgram, Execution]:
        """A program's launches, what runs, and in which way: some have to run by XLA all the same."""
        launches, runs = made
        execution = resolve_execution(execution, self._library, runs, {} if self._is_required else unknown)
        if execution.way != KERNELS:
            launches = runs = planned if self._asked.way == AUTO else self._lower(chunks=True)
        launches.result_shapes = runs.result_shapes = planned.result_shapes
        return launches, runs, execution
