"""Profiles ops that a session step runs on a device outside compiled programs, as if they were one program.

On a real system these ops are compiled together; here TensorFlow's kernels have run them when this is asked, one by
one. So all shapes are known. Ops without an XLA kernel, transfers to other devices and nested programs are outside the
program. Their inputs are its results, and their outputs its arguments.
"""

from __future__ import annotations

from typing import Any, cast

from tensorflow.compat.v2 import errors

from tf_ipu_shim.compiler import session_steps
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.driver import compilation, planned_program, profiles, program_requests
from tf_ipu_shim.driver.engine_needed import may_compute, needs_engine
from tf_ipu_shim.driver.program_requests import Job
from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.memory_model import bug_report
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime import log, trace
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.tf_private.protos import graph_pb2

NAME = "cluster"
"""The name of such a program, as in Graphcore's TensorFlow."""

_OUTSIDE = frozenset({"_Arg", "_Retval", "VarHandleOp"})


def profile_step(library: Library, call: Call, message: Any, device: IpuDevice) -> bytes:
    """Writes the profile of a step's ops, if requested."""
    step, profiling = message.plain_ops, device.options.profiling
    nodes = [node for node in step.graph.node if node.op not in _OUTSIDE and vocabulary.CHIP_ATTRIBUTE not in node.attr]
    outside = set(library.uncompilable(graph_pb2.GraphDef(node=nodes).SerializeToString()))
    part = session_steps.extract_part(step, [node.name for node in nodes if node.name not in outside], NAME)
    answer = program_pb2.ProgramAnswer()
    profiled = None
    if part.function:
        request = program_requests.make_call(
            NAME, part.function, Device(message.ordinal), part.functions, part.arguments
        )
        profiled = _profile_program(Job(library, call, request, device))
    if profiled is not None:
        _describe(answer, request, profiled, profiling)
    elif profiling.enable_ipu_trace_events and any(map(may_compute, part.ops_run)):
        events = trace.events_of(message.ordinal, NAME, profiling, [])
        answer.compilation.CopyFrom(program_pb2.Compilation(module=NAME, events=events))
    return cast(bytes, answer.SerializeToString())


def _profile_program(job: Job) -> planned_program.ProfiledProgram | None:
    """Returns the program, or None if it cannot be built; the ops have run, so no error is raised."""
    try:
        return planned_program.profile_uncompiled(job)
    except (errors.OpError, NotImplementedError, ValueError) as error:
        log.info(f"The ops of a session on {job.device.name} have no profile: {error}")
    except Exception as error:
        bug_report.warn(job.request, error, "not at all")
    return None


def _describe(answer: Any, request: ProgramRequest, profiled: planned_program.ProfiledProgram, profiling: Any) -> None:
    if not needs_engine(request, profiled.program):
        return
    variables = [0 if kind else -1 for kind in request.variable_types]
    described = compilation.describe(request, (), variables, profiling, details=profiled.details)
    described.variables.extend(request.variable_names)
    answer.compilation.CopyFrom(described)
    profiles.add_to(answer.compilation, profiled.run_log)
