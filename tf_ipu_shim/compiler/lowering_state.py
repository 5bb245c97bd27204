"""Defines the options of a lowering and the state that its passes share."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.placement.placement import Placer
from tf_ipu_shim.compiler.replicas.replicas import Replica
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime.jobs.instances import WHOLE, Share
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_serial = itertools.count()


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoweringOptions:
    """How a program is lowered.

    Args:
        num_ipus: IPUs that the program may use.
        order: the order in which shards use the IPUs, one of `machine.selection.ORDERS`.
        chunks: whether loops may run several iterations in one XLA program.
        statistics_group: replicas that share the statistics of batch normalisation.
        runs: whether the program may run. If it is only analysed, its first replica is enough, because all are equal.
        share: the part of the program's replicas this process has.
        target: the chip and program that users' Poplar ops are built for.
    """

    num_ipus: int
    order: str = "AUTO"
    chunks: bool = True
    statistics_group: int = 1
    runs: bool = True
    share: Share = WHOLE
    target: str = ""


class LoweringState:
    """A program on its way through the passes.

    Attributes:
        functions: the program's functions, which passes check and rewrite.
        placer: assigns each op a location.
        enqueues: how often one run enqueues to each outfeed.
    """

    replicas: list[Replica]
    placer: Placer
    enqueues: dict[str, int]
    compiled: list[tuple[str, function_pb2.FunctionDef]]
    program: LoweredProgram

    def __init__(self, plugin: Library, call: Call, request: ProgramRequest, options: LoweringOptions) -> None:
        self.plugin, self.call, self.request, self.options = plugin, call, request, options
        self.functions = Functions(request.library, request.function)
        self.diagnostics = Diagnostics(call)
        self.group = f"{request.function}_{next(_serial)}"


@dataclasses.dataclass
class XlaState:
    """A planned program in the passes for XLA, which change only the program that runs.

    Args:
        diagnostics: names ops with the script's lines.
        runs_by_one_dnn: whether an op's kernel is oneDNN's.
        on_model: whether the device is an IPU Model, which computes on the host.
        in_application: whether an embedded application runs the program.
    """

    program: LoweredProgram
    diagnostics: Diagnostics
    runs_by_one_dnn: Callable[[node_def_pb2.NodeDef], bool]
    on_model: bool
    in_application: bool
