"""Writes the tensor map of trace events: tensors and pipeline stages by tile."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir.node_defs import producer_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.cycle_model.phase import spread
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory import Block
from tf_ipu_shim.memory_model.hlo.user_op_calls import FROM_OUTSIDE
from tf_ipu_shim.memory_model.variables.io_tiles import IoTiles
from tf_ipu_shim.memory_model.variables.mapped_tensors import MappedTensor, stage_computation
from tf_ipu_shim.memory_model.variables.pipeline_memory import find_pipelines


def tensor_map_json(
    module: str,
    request: ProgramRequest,
    program: LoweredProgram,
    chip: ChipSpec,
    tensors: Sequence[MappedTensor] = (),
    io_tiles: IoTiles = IoTiles(),  # noqa: B008
    blocks: Mapping[int, Block] = MappingProxyType({}),
) -> str:
    """Returns JSON with the tiles of each tensor: by the allocator of a user's op, otherwise by the linear mapping.

    Arguments and variables belong to the program itself. Tensors made in loops, branches, forward pipeline stages and
    matmuls belong to these. `pipelines` says on which IPUs the stages of each pipeline are, in the first replica; -1
    means all.

    Source: docs/reference/facts.md, section "Profiles": `mappings` of the event COMPILE_END.
    """
    on_io = io_tiles.used_by(((tensor.ipu, tensor.bytes) for tensor in tensors if tensor.is_feed), chip)
    rows: dict[str, list[Any]] = {module: _arguments(request, program, chip, io_tiles, on_io, blocks)}
    for tensor in tensors:
        shape, size = tensor.shape, tensor.element_bytes
        if tensor.ipu not in on_io:
            where = _tiles(shape, size, tensor.ipu, chip, chip)
        elif tensor.is_feed:
            where = _on_io_tiles(shape, size, tensor.ipu, chip, io_tiles)
        else:
            where = _tiles(shape, size, tensor.ipu, chip, io_tiles.compute_tiles(chip))
        row = [tensor.instruction, 0, list(shape), tensor.kind, 0, 0, math.prod(shape), where, tensor.name]
        rows.setdefault(tensor.computation or module, []).append(row)
    ipus, pipelines = program.shard_chips, find_pipelines(request.library.values())
    stages = [
        [[ipus[shard] if shard >= 0 else shard for shard in shards] for shards in pipeline.devices]
        for pipeline in pipelines
    ]
    for pipeline in pipelines:  # those that make nothing too
        for stage in range(pipeline.stages):
            rows.setdefault(stage_computation(pipeline.name, stage), [])
    return json.dumps({"mappings": rows, "pipelines": stages})


def _arguments(
    request: ProgramRequest,
    program: LoweredProgram,
    chip: ChipSpec,
    io_tiles: IoTiles,
    on_io: Container[int],
    blocks: Mapping[int, Block],
) -> list[Any]:
    """Returns rows of arguments and variables; IPUs in `on_io` reserve I/O tiles."""
    taking = _consumers(program)
    rows = []
    for index, argument in enumerate(request.library[request.function].signature.input_arg):
        kind = dtypes.as_dtype(request.variable_types[index] or request.arg_types[index])
        shape = request.variable_shapes[index] if request.variable_types[index] else request.arg_shapes[index]
        ipu = program.variable_chips[index] if program.variable_chips[index] >= 0 else taking.get(argument.name, 0)
        owner = request.variable_names[index] or argument.name
        size = max(1, kind.size)
        where = _allocated(blocks.get(ipu), owner, size, ipu * chip.tiles)
        where = where or _tiles(shape, size, ipu, chip, io_tiles.compute_tiles(chip) if ipu in on_io else chip)
        inst = f"arg{index}.{index + 1}"
        rows.append([inst, 0, list(shape), kind.name.upper(), 0, 0, math.prod(shape), where, f"XLA_Args/{owner}"])
    return rows


def _allocated(block: Block | None, owner: str, size: int, first: int) -> list[list[int]]:
    """Returns the parts of an argument that a user's op has allocated; empty for others. An IPU's tile 0 is `first`."""
    for value in block.values if block is not None else ():
        if value.tiles and value.owner == owner and value.kind in FROM_OUTSIDE:
            bytes_of_tiles = (each for each, count in value.tiles for _ in range(count))
            return [[first + tile, each // size] for tile, each in enumerate(bytes_of_tiles) if each]
    return []


def _consumers(program: LoweredProgram) -> Mapping[str, int]:
    """Maps each argument to the IPU that first consumes it."""
    found: dict[str, int] = {}
    for cluster in program.clusters:
        for tensor in cluster.inputs:
            found.setdefault(producer_name(tensor), cluster.chip)
    return found


def _tiles(shape: Iterable[int], size: int, ipu: int, chip: ChipSpec, computing: ChipSpec) -> list[list[int]]:
    """Returns the parts of a tensor on compute tiles, which are first on an IPU."""
    elements = math.prod(shape)
    where = spread(computing, elements, size)
    return _parts(ipu * chip.tiles, computing.tiles, where.tiles, where.most, elements, 1)


def _on_io_tiles(shape: Iterable[int], size: int, ipu: int, chip: ChipSpec, io_tiles: IoTiles) -> list[list[int]]:
    """Returns the parts of a tensor on I/O tiles, which are last on an IPU."""
    elements = math.prod(shape)
    most = io_tiles.elements_per_tile(elements, size)
    count = io_tiles.count
    return _parts((ipu + 1) * chip.tiles - count, count, -(-elements // most), most, elements)


def _parts(first: int, among: int, count: int, most: int, elements: int, begin: int = 0) -> list[list[int]]:
    """Returns tile and length of each part: `count` of the `among` tiles starting at `first`."""
    return sorted([first + (begin + part) % among, min(most, elements - part * most)] for part in range(count))
