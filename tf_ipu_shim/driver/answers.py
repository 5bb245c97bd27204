"""Builds the answer to the plugin's request from a prepared program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.driver.compilation import EventDetails
from tf_ipu_shim.driver.engine_needed import needs_engine
from tf_ipu_shim.driver.planned_program import PreparedProgram
from tf_ipu_shim.driver.profiles import RunLog
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model.walk import user_op_builds
from tf_ipu_shim.messages import program_pb2


@dataclasses.dataclass(frozen=True)
class Program:
    """A lowered program, as stored.

    Args:
        answer: a `ProgramAnswer` without its compilation.
        needs_engine: whether Graphcore's compiler would make an engine of it.
        plan: its memory; None if it was not planned.
        run_log: the log of its runs; not cached.
        details: its trace events; not cached.
        result_shapes: the shapes of its results, None for an unknown one; not cached.
        user_op_calls: the calls of the script's Poplar ops, in the order in which they are built.
    """

    answer: Any
    launches: list[str]
    needs_engine: bool
    plan: MemoryPlan | None
    run_log: RunLog = RunLog()  # noqa: RUF009
    details: EventDetails = EventDetails()  # noqa: RUF009
    result_shapes: Sequence[Sequence[int] | None] = ()
    user_op_calls: Sequence[bytes] = ()


def make_program(request: ProgramRequest, lowered: PreparedProgram) -> Program:
    """Returns a prepared program with the answer that the plugin runs, without its compilation."""
    needed, runs = needs_engine(request, lowered.counted), lowered.runs
    answer = program_pb2.ProgramAnswer(
        node=runs.node,
        functions=runs.functions,
        variable_chips=runs.variable_chips,
        inputs=runs.inputs,
        replica_variables=[
            program_pb2.ReplicaVariable(argument=argument, chip=chip) for argument, chip in runs.replica_variables
        ],
        run_group=runs.run_group,
        user_op_target=user_op_builds.target_in(lowered.counted),
    )
    by_xla = lowered.by_xla
    return Program(
        answer,
        by_xla.programs,
        needed,
        lowered.plan,
        lowered.run_log,
        lowered.details,
        by_xla.result_shapes,
        user_op_builds.calls_of(lowered.counted),
    )


def add_result_shapes(answer: Any, program: LoweredProgram) -> None:
    """Adds the result shapes and outfeed counts of a program that is compiled and not run."""
    for feed, rows in program.enqueues.items():
        answer.sent.add(feed_id=feed, rows=rows, replicas=program.replicas)
    for sizes in program.result_shapes:
        shape = answer.result_shapes.add(unknown_rank=sizes is None)
        for size in sizes or ():
            shape.dim.add(size=size)
