"""Where the arguments, variables and pipeline stages of a program are, in the form that trace events tell it in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tensorflow.python.framework import dtypes

from tf_ipu_shim.accounting.pipeline_memory import pipelines_in
from tf_ipu_shim.lowering.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.machine.chips import Chip
from tf_ipu_shim.machine.cycles.phases import spread


def tensor_map_of(module: str, request: ProgramRequest, program: LoweredProgram, chip: Chip) -> str:
    """JSON that says on which tiles each argument and variable of a program is, by the linear mapping.

    `pipelines` says on which IPUs the stages of each pipeline are, in the first replica; -1 stands for all. What a
    program makes meanwhile is not in it.

    Args:
        module: what the program is called in events.
        request: its call.
        program: what it was lowered to.
        chip: of all IPUs.

    Source: docs/facts.md, section "Profiles": `mappings` of the event COMPILE_END.
    """
    taking = _takers(program)
    arguments = request.library[request.function].signature.input_arg
    rows = []
    for number, argument in enumerate(arguments):
        kind = request.variable_types[number] or request.arg_types[number]
        shape = request.variable_shapes[number] if request.variable_types[number] else request.arg_shapes[number]
        ipu = program.variable_ipus[number] if program.variable_ipus[number] >= 0 else taking.get(argument.name, 0)
        name = request.variable_names[number] or argument.name
        rows.append(_row(number, name, dtypes.as_dtype(kind), shape, ipu, chip))
    ipus = program.shard_ipus
    stages = [
        [[ipus[shard] if shard >= 0 else shard for shard in shards] for shards in pipeline.devices]
        for pipeline in pipelines_in(request.library.values())
    ]
    return json.dumps({"mappings": {module: rows}, "pipelines": stages})


def _takers(program: LoweredProgram) -> Mapping[str, int]:
    """The IPU that first takes each argument, by its name."""
    found: dict[str, int] = {}
    for cluster in program.clusters:
        for tensor in cluster.inputs:
            found.setdefault(tensor.split(":", 1)[0], cluster.ipu)
    return found


def _row(number: int, name: str, kind: Any, shape: tuple[int, ...], ipu: int, chip: Chip) -> list[Any]:
    elements = math.prod(shape)
    where = spread(chip, elements, max(1, kind.size))
    first = ipu * chip.tiles
    tiles = [[first + tile, min(where.most, elements - tile * where.most)] for tile in range(where.tiles)]
    return [
        f"arg{number}.{number + 1}", 0, list(shape), kind.name.upper(), 0, 0, elements, tiles, f"XLA_Args/{name}"
    ]  # fmt: skip
