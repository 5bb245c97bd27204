"""What the plugin calls when a program runs for the first time under a configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from google.protobuf import message as protobuf

from tf_ipu_shim import errors
from tf_ipu_shim.accounting import memory_plan
from tf_ipu_shim.compiling import compilation
from tf_ipu_shim.compiling.engine_needed import needs_engine
from tf_ipu_shim.lowering.diagnostics import Diagnostics
from tf_ipu_shim.lowering.execution import XLA, execution_of, settled
from tf_ipu_shim.lowering.kernels import by_kernels
from tf_ipu_shim.lowering.lower import lower
from tf_ipu_shim.lowering.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.lowering.shared_statistics import check_shared_statistics
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime.device import IpuDevice


def lower_bytes(library: Library, device_of: Callable[[int], IpuDevice], call: Call, request: bytes) -> bytes:
    """Lowers what the plugin sends, and plans its memory.

    Args:
        library: the loaded plugin.
        device_of: gives a TensorFlow device by its ordinal, attached to its IPUs.
        call: lets the lowering question the TensorFlow runtime.
        request: a serialised `ProgramRequest`.

    Returns:
        A serialised `ProgramAnswer`.
    """
    parsed = parse_request(request)
    device = device_of(parsed.ordinal)
    program, runs = _runs_as(library, call, parsed, device)
    answer = answer_of(runs)
    if needs_engine(parsed, program):
        answer.compilation.CopyFrom(compilation.describe(parsed, program, device.options.profiling))
    return answer.SerializeToString()


def _runs_as(
    library: Library, call: Call, request: ProgramRequest, device: IpuDevice
) -> tuple[LoweredProgram, LoweredProgram]:
    """A program as XLA launches, and what runs: that, or the same by kernels. Its memory is kept for the report."""
    execution, diagnostics = execution_of(device), Diagnostics(call)
    by_xla = execution.way == XLA
    plans = memory_plan.enabled() or not by_xla
    # Kernels gain nothing from chunks.
    program = runs = lower(library, call, request, device.num_ipus, plans, device.selection_order, chunks=by_xla)
    group_size = device.options.experimental_distributed_batch_norm_replica_group_size
    check_shared_statistics(request.library.values(), program.replicas, group_size)
    if not plans:
        return program, program
    plan = memory_plan.plan_memory(request, program, device, diagnostics.user_line)
    if not by_xla:
        runs = by_kernels(program, request.library, diagnostics.describe if execution.is_checked else None)
        unknown = dict(plan.coarse) if plan is not None else {program.node.name: "its memory could not be counted"}
        execution = settled(execution, library, runs, unknown)
        if execution.way == XLA:
            program = runs = lower(library, call, request, device.num_ipus, plans, device.selection_order)
    if plan is not None and memory_plan.enabled():
        memory_plan.keep(request, device, dataclasses.replace(plan, way=execution.way, way_reason=execution.reason))
    return program, runs


def parse_request(request: bytes) -> ProgramRequest:
    """Reads what the plugin sends.

    Args:
        request: a serialised `program_pb2.ProgramRequest`.

    Raises:
        PluginError: it is none, or names a function that it does not bring.
    """
    try:
        message = program_pb2.ProgramRequest.FromString(request)
    except protobuf.DecodeError as error:
        raise errors.PluginError(f"The plugin sent {len(request)} bytes, no ProgramRequest: {error}.") from error
    library = {function.signature.name: function for function in message.library.function}
    if message.function not in library:
        raise errors.PluginError(
            f"The plugin asks for function {message.function!r} of program {message.name!r}, and sent "
            f"{sorted(library) or 'no functions'}."
        )
    if len(message.arguments) != len(library[message.function].signature.input_arg):
        raise errors.PluginError(
            f"The plugin sent {len(message.arguments)} arguments for {message.function!r} of program "
            f"{message.name!r}, which takes {len(library[message.function].signature.input_arg)}."
        )
    return ProgramRequest(
        name=message.name,
        function=message.function,
        ordinal=message.ordinal,
        library=library,
        arg_types=[argument.type for argument in message.arguments],
        arg_shapes=[_shape(argument.shape) for argument in message.arguments],
        variable_names=[argument.variable.name for argument in message.arguments],
        variable_types=[argument.variable.type for argument in message.arguments],
        variable_shapes=[_shape(argument.variable.shape) for argument in message.arguments],
    )


def _shape(proto: Any) -> tuple[int, ...]:
    return tuple(dim.size for dim in proto.dim)


def answer_of(program: LoweredProgram) -> Any:
    """What the plugin is told of a program, but for its compilation: a `program_pb2.ProgramAnswer`."""
    return program_pb2.ProgramAnswer(
        node=program.node,
        functions=program.functions,
        variable_chips=program.variable_ipus,
        inputs=program.inputs,
        replica_variables=[
            program_pb2.ReplicaVariable(argument=argument, chip=chip) for argument, chip in program.replica_variables
        ],
        run_group=program.run_group,
    )
