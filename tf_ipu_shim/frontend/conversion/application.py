"""Compiles a graph's IPU part to an embedded application and replaces it by a call of its engine.

An application is compiled under its own configuration. The process has one, so the script's is removed for that time
and restored afterwards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.configuration.tree import IPUConfig
from tf_ipu_shim.frontend.applications import calls, compile_op
from tf_ipu_shim.frontend.control_flow import loops
from tf_ipu_shim.frontend.conversion import graph_nodes, host_part, ipu_program, stage_functions, system_options
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedQueue
from tf_ipu_shim.frontend.pipelines import pipelining_ops
from tf_ipu_shim.runtime import devices

FILE = "application.poplar_exec"

# Accepts the IPU part, the names of its inputs and outputs, an infeed and an outfeed. A program runs the part for each
# infeed element.
Program = Callable[[Any, Sequence[str], Sequence[str], Any, Any], Any]


@dataclasses.dataclass(frozen=True)
class ApplicationSettings:
    """The target system and output path of an application.

    Args:
        timeout_us: the timeout of its engine, in microseconds, see `embedded_runtime_start`.
        matmul_amp: see `IpuConversionParams`, for this and the next three.
    """

    directory: str
    timeout_us: int
    num_ipus: int
    matmul_amp: float
    conv_amp: float
    matmul_partial_type: str
    conv_partial_type: str

    @property
    def path(self) -> str:
        """The path of the application's file."""
        return os.path.join(self.directory, FILE)


def loop_program(iterations: int) -> Program:
    """Returns a program that runs a part of a graph in a loop."""

    def program(part: Any, input_names: Sequence[str], output_names: Sequence[str], infeed: Any, outfeed: Any) -> Any:
        def body(*values: Any) -> Any:
            return outfeed.enqueue(
                ipu_program.import_part(part, dict(zip(input_names, values, strict=True)), output_names)
            )

        return loops.repeat(iterations, body, [], infeed)

    return program


def pipeline_program(stages: Mapping[str, int], ipus: Mapping[int, int], executions: int) -> Program:
    """Returns a program that runs a part of a graph as a pipeline."""

    def program(part: Any, input_names: Sequence[str], output_names: Sequence[str], infeed: Any, outfeed: Any) -> Any:
        graph_def = _without_outer_controls(part)
        node_names = {node.name for node in graph_def.node}
        stage_of = {name: stage for name, stage in stages.items() if name in node_names}
        parts = stage_functions.split_into_stages(graph_def, stage_of, input_names, output_names)
        if len(parts) < 2:
            raise ValueError(
                f"The part of the model on the IPU is in {len(parts)} stage; expected two or more for a "
                "pipeline. Leave pipeline_cfg out, or assign the nodes to more stages."
            )
        placed = [ipus[stage] for stage in sorted(set(stage_of.values()))]
        return pipelining_ops.pipeline(
            [_stage_function(graph_def, program_part) for program_part in parts],
            gradient_accumulation_count=len(parts),
            repeat_count=executions,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            device_mapping=placed,
        )

    return program


def embed_application(
    graph_def: Any, signature_def: Any, program: Program, settings: ApplicationSettings
) -> tuple[Any, Any]:
    """Returns the graph with a call of an embedded engine instead of its IPU nodes, and its signature.

    The application's file is written. Host computations before and after it stay. If no node is placed, all but
    placeholders are on the IPU.
    """
    placed = type(graph_def)()
    placed.CopyFrom(graph_def)
    if not any(host_part.is_on_ipu(node) for node in placed.node):
        for node in placed.node:
            node.device = "" if node.op == "Placeholder" else "/device:IPU:0"
    engine = f"saved_model_{uuid.uuid4().hex}"

    def call(part: Any, operands: dict[str, Any], outputs: Sequence[str]) -> Any:
        _compile_application(part, operands, outputs, program, settings)
        context = calls.embedded_runtime_start(settings.path, [], engine, settings.timeout_us)
        return calls.embedded_runtime_call(list(operands.values()), context)

    return ipu_program.replace_ipu_part(placed, signature_def, call)


def _compile_application(
    part: Any, operands: dict[str, Any], outputs: Sequence[str], program: Program, settings: ApplicationSettings
) -> None:
    if not operands:
        raise ValueError(
            "The part of the model on the IPU has no inputs, and an application needs at least one. "
            "Leave out embedded_runtime_save_config."
        )
    for name, tensor in operands.items():
        if not tensor.shape.is_fully_defined():
            raise ValueError(
                f"The application takes {name} of the shape {tensor.shape}, and IPUs need to know all axes. Save the "
                "model with that shape; batch_size only sets the first axis of inputs."
            )
    os.makedirs(settings.directory, exist_ok=True)
    with _temporary_configuration(settings), v1.Graph().as_default(), v1.Session() as session:
        zeros = tuple(v1.zeros(tensor.shape, tensor.dtype) for tensor in operands.values())
        infeed = IPUInfeedQueue(v1.data.Dataset.from_tensors(zeros).repeat())
        outfeed = IPUOutfeedQueue()
        path = compile_op.application_compile(
            lambda: program(part, list(operands), outputs, infeed, outfeed), None, settings.path, False, None
        )
        session.run(path)


@contextlib.contextmanager
def _temporary_configuration(settings: ApplicationSettings) -> Iterator[None]:
    before = devices.configured()
    devices.reset()
    try:
        options = IPUConfig()
        system_options.set_options(options, settings)
        options.configure_ipu_system()
        yield
    finally:
        devices.reset()
        if before is not None:
            devices.configure(before)


def _without_outer_controls(part: Any) -> Any:
    """Returns a part of a graph without control inputs from outside, which have been computed before."""
    copy = type(part)()
    copy.CopyFrom(part)
    inside = {node.name for node in copy.node}
    for node in copy.node:
        node.input[:] = [name for name in node.input if not graph_nodes.is_control(name) or name[1:] in inside]
    return copy


def _stage_function(graph_def: Any, part: stage_functions.StagePart) -> Callable[..., Any]:
    function = stage_functions.stage_function(graph_def, part)
    return lambda *inputs: function(*inputs)
