"""Where the tensors and pipeline stages of a program are, in the form that trace events tell it in."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.cycle_model.phases import spread
from tf_ipu_shim.machine.chips import Chip
from tf_ipu_shim.memory_model.variables.io_tiles import IoTiles
from tf_ipu_shim.memory_model.variables.mapped_tensors import MappedTensor, stage_computation
from tf_ipu_shim.memory_model.variables.pipeline_memory import pipelines_in


def tensor_map_of(
    module: str,
    request: ProgramRequest,
    program: LoweredProgram,
    chip: Chip,
    made: Sequence[MappedTensor] = (),
    io_tiles: IoTiles = IoTiles(),  # noqa: B008
) -> str:
    """JSON that says on which tiles each tensor of a program is, by the linear mapping.

    Arguments and variables are those of the program itself; what loops, branches, forward stages of pipelines and
    products make belongs to these.
    `pipelines` says on which IPUs the stages of each pipeline are, in the first replica; -1 stands for all.

    Args:
        module: what the program is called in events.
        request: its call.
        program: what it was lowered to.
        chip: of all IPUs.
        made: what the program makes, see `MappedTensors`.
        io_tiles: what is set apart for feeds.

    Source: docs/facts.md, section "Profiles": `mappings` of the event COMPILE_END.
    """
    on_io = io_tiles.used_by(((tensor.ipu, tensor.bytes) for tensor in made if tensor.is_feed), chip)
    rows: dict[str, list[Any]] = {module: _arguments(request, program, chip, io_tiles, on_io)}
    for tensor in made:
        shape, size = tensor.shape, tensor.element_bytes
        if tensor.ipu not in on_io:
            where = _tiles(shape, size, tensor.ipu, chip, chip)
        elif tensor.is_feed:
            where = _on_io_tiles(shape, size, tensor.ipu, chip, io_tiles)
        else:
            where = _tiles(shape, size, tensor.ipu, chip, io_tiles.others(chip))
        row = [tensor.instruction, 0, list(shape), tensor.kind, 0, 0, math.prod(shape), where, tensor.name]
        rows.setdefault(tensor.computation or module, []).append(row)
    ipus, pipelines = program.shard_ipus, pipelines_in(request.library.values())
    stages = [
        [[ipus[shard] if shard >= 0 else shard for shard in shards] for shards in pipeline.devices]
        for pipeline in pipelines
    ]
    for pipeline in pipelines:  # those that make nothing too
        for stage in range(pipeline.stages):
            rows.setdefault(stage_computation(pipeline.name, stage), [])
    return json.dumps({"mappings": rows, "pipelines": stages})


def _arguments(
    request: ProgramRequest, program: LoweredProgram, chip: Chip, io_tiles: IoTiles, on_io: Container[int]
) -> list[Any]:
    """Rows of arguments and variables; on IPUs in `on_io` some tiles are set apart."""
    taking = _takers(program)
    rows = []
    for number, argument in enumerate(request.library[request.function].signature.input_arg):
        kind = dtypes.as_dtype(request.variable_types[number] or request.arg_types[number])
        shape = request.variable_shapes[number] if request.variable_types[number] else request.arg_shapes[number]
        ipu = program.variable_ipus[number] if program.variable_ipus[number] >= 0 else taking.get(argument.name, 0)
        name = f"XLA_Args/{request.variable_names[number] or argument.name}"
        size = max(1, kind.size)
        where = _tiles(shape, size, ipu, chip, io_tiles.others(chip) if ipu in on_io else chip)
        inst = f"arg{number}.{number + 1}"
        rows.append([inst, 0, list(shape), kind.name.upper(), 0, 0, math.prod(shape), where, name])
    return rows


def _takers(program: LoweredProgram) -> Mapping[str, int]:
    """The IPU that first takes each argument, by its name."""
    found: dict[str, int] = {}
    for cluster in program.clusters:
        for tensor in cluster.inputs:
            found.setdefault(tensor.split(":", 1)[0], cluster.ipu)
    return found


def _tiles(shape: Iterable[int], size: int, ipu: int, chip: Chip, computing: Chip) -> list[list[int]]:
    """Parts of a tensor on the tiles that compute, which are the first ones of the IPU: from the second of these on."""
    elements = math.prod(shape)
    where = spread(computing, elements, size)
    return _parts(ipu * chip.tiles, computing.tiles, where.tiles, where.most, elements, 1)


def _on_io_tiles(shape: Iterable[int], size: int, ipu: int, chip: Chip, io_tiles: IoTiles) -> list[list[int]]:
    """Parts of a tensor on the I/O tiles, which are the last ones of the IPU."""
    elements = math.prod(shape)
    most = io_tiles.elements_on_a_tile(elements, size)
    count = io_tiles.count
    return _parts((ipu + 1) * chip.tiles - count, count, -(-elements // most), most, elements)


def _parts(first: int, among: int, count: int, most: int, elements: int, begin: int = 0) -> list[list[int]]:
    """Tiles and how much is on each: `count` of the `among` tiles that `first` is the first of."""
    return sorted([first + (begin + part) % among, min(most, elements - part * most)] for part in range(count))
