"""Holds the inputs and results that all steps of the memory analysis share."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory import Block, Mode, Value
from tf_ipu_shim.memory_model.computations.work import ProgramWork
from tf_ipu_shim.memory_model.shapes.batch_operands import MiniBatch
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec
from tf_ipu_shim.memory_model.variables.io_tiles import IoTiles
from tf_ipu_shim.memory_model.variables.storage import StoredBytes
from tf_ipu_shim.memory_model.variables.variable_kinds import WEIGHT, variable_kinds
from tf_ipu_shim.memory_model.walk.analysis_options import AnalysisOptions
from tf_ipu_shim.tf_private.protos import node_def_pb2


def batch_size_of(request: ProgramRequest) -> int:
    """Returns the first dimension of the largest argument; 0 without one."""
    shapes = [
        shape
        for kind, shape in zip(request.arg_types, request.arg_shapes)
        if kind != op_types.RESOURCE and shape is not None and len(shape) > 0
    ]
    return max(((math.prod(shape), shape[0]) for shape in shapes), default=(0, 0))[1]


class Feed(NamedTuple):
    """A copy of an infeed's element from the host, or to an outfeed.

    Args:
        block: the IPU's program, which contains the copy.
        copy: the data that it moves, if cycles are estimated.
    """

    block: Block
    ipu: int
    bytes: int
    copy: Computation | None
    name: str


class AnalysisContext:
    """Inputs and results of the memory analysis of one program.

    Args:
        request: the traced function, with the shapes of its arguments and variables.

    Attributes:
        variables: bytes of each variable by (IPU, name), wherever they are.
        remote: bytes in remote memory, by IPU and category.
        exchanges: bytes that a run copies, by (source, destination).
        coarse: XLA programs that were looked at op by op instead of in HLO, with the reason.
        unconverted: XLA's errors for programs that it did not convert.
        counters: function and op of additions to loop counters that need no computation.
        scopes: for an op's name, the traced function that contains it.
        feeds: copies of elements of infeeds and outfeeds.
        fed_samples: the fed samples of the mini-batch, if it is an argument; 0 if it is from an infeed.
    """

    def __init__(self, request: ProgramRequest, program: LoweredProgram, options: AnalysisOptions) -> None:
        self.options = options
        self.names, self.tensors, self.sizes, self.storage = (
            options.names,
            options.tensors,
            options.sizes,
            options.storage,
        )
        self._keys = itertools.count()
        self._request = request
        self._program = program
        functions = [*program.functions, *program.planned_functions]
        self.library = {**request.library, **{function.signature.name: function for function in functions}}
        self._clusters = {cluster.function: cluster for cluster in [*program.clusters, *program.planned_clusters]}
        self.blocks: dict[int, Block] = {}
        self.variables: dict[tuple[int, str], int] = {}
        self.remote: dict[int, dict[str, int]] = {}
        self.exchanges: dict[tuple[int, int], int] = {}
        self.coarse: dict[str, str] = {}
        self.unconverted: dict[str, str] = {}
        self.counters: set[tuple[str, str]] = set()
        self.scopes: dict[str, str] = {}
        self.work = ProgramWork()
        self.feeds: list[Feed] = []
        self._mini_batches: dict[int, MiniBatch] = {}  # by the identity of the block that each has
        self._variable_values: dict[tuple[int, int], int] = {}
        self._kinds: list[str] | None = None
        nodes = (node for function in request.library.values() for node in function.node_def)
        has_infeeds = self.sizes.divides_batch and any(node.op in vocabulary.INFEEDS for node in nodes)
        self.fed_samples = 0 if has_infeeds else batch_size_of(request)

    def put_on_io_tiles(self, io_tiles: IoTiles, chip: ChipSpec) -> None:
        """Adds the exchange between I/O tiles and compute tiles to each feed copy."""
        used = io_tiles.used_by(((feed.ipu, feed.bytes) for feed in self.feeds), chip)
        for feed in self.feeds:
            if feed.ipu not in used:
                continue
            self.blocks[feed.ipu].io_tiles = io_tiles.count
            self.blocks[feed.ipu].add(Value(feed.bytes, f"{feed.name} (I/O tiles)", "argument", Mode.ALWAYS))
            if feed.copy is not None:
                copy = io_tiles.copy(feed.copy, feed.name)
                steps = feed.block.steps
                steps[:] = [step._replace(work=copy) if step.work is feed.copy else step for step in steps]

    def new_key(self) -> int:
        """Returns a new key for a step that several IPUs execute together."""
        return next(self._keys)

    def counters_in(self, function: str) -> set[str]:
        """Returns the ops of a function that only count iterations."""
        return {op for counted, op in self.counters if counted == function}

    def mini_batch_in(self, block: Block) -> MiniBatch | None:
        """Returns the mini-batch tracker of a block, or None if sizes do not need it."""
        if not self.sizes.divides_batch:
            return None
        return self._mini_batches.setdefault(id(block), MiniBatch(block, self.sizes.batch_divisor))

    def place_variables(self) -> None:
        """Adds all variables to their IPUs."""
        for index, ipu in enumerate(self._program.variable_chips):
            if ipu >= 0:
                self.variable(ipu, index)

    def pipeline_on_ipus(self, pipeline: PipelineDescription) -> PipelineDescription:
        """Returns a pipeline whose stages name the device's IPUs instead of shards; -1 (all) stays."""
        ipus = self._program.shard_chips
        devices = tuple(tuple(ipus[shard] if shard >= 0 else shard for shard in stage) for stage in pipeline.devices)
        return self.storage.scheduled(self.sizes.in_flight(dataclasses.replace(pipeline, devices=devices)))

    def variable(self, ipu: int, index: int) -> int:
        """Returns the always-live value of a variable on an IPU, by argument index."""
        key = (ipu, index)
        if key not in self._variable_values:
            name, kind, stored = self.name_of(index), self.kind_of(index), self.stored(index)
            block = self.blocks.setdefault(ipu, Block(f"IPU {ipu}"))
            self._variable_values[key] = block.add(Value(stored.on_chip, name, kind, Mode.ALWAYS))
            self.variables[ipu, name] = self.size_of(index)
            self.keep_remote(ipu, kind, stored.remote)
        return self._variable_values[key]

    def size_of(self, index: int) -> int:
        """Returns the bytes of a variable."""
        kind, shape = self._request.variable_types[index], self._request.variable_shapes[index]
        return self.sizes.of(TensorSpec(kind, shape))

    def stored(self, index: int) -> StoredBytes:
        """Returns the memory that stores a variable."""
        size, elements = self.size_of(index), math.prod(self._request.variable_shapes[index])
        return self.storage.of(self.kind_of(index), elements, size // elements if elements else 0)

    def kind_of(self, index: int) -> str:
        """Returns a variable's kind: one of `machine.memory.CATEGORIES`."""
        if self._kinds is None:
            try:
                self._kinds = variable_kinds(self._request.library, self._request.function)
            except LookupError:  # an op that this process does not know, which the program's lowering reports
                self._kinds = [WEIGHT] * len(self._request.arg_types)
        return self._kinds[index]

    def keep_remote(self, ipu: int, kind: str, size: int) -> None:
        """Counts bytes in remote memory."""
        if size:
            types = self.remote.setdefault(ipu, {})
            types[kind] = types.get(kind, 0) + size

    def name_of(self, index: int) -> str:
        """Returns a variable's name, or the argument's if it has none."""
        name = self._request.variable_names[index]
        if name and not name.startswith("Resource-"):
            return name
        argument = self.library[self._request.function].signature.input_arg[index].name
        return argument[: -len("_resource")] if argument.endswith("_resource") else argument

    def planned_loop(self, node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef | None:
        """Returns the unchunked loop to analyse instead of a chunked one, else None."""
        return self._program.chunked_loops.get(node.attr["body"].func.name) if node.op in vocabulary.LOOPS else None

    def is_emitted(self, functions: Sequence[str]) -> bool:
        """Returns whether functions were emitted by lowering, so that their ops have devices."""
        return all(all(node.device for node in self.library[name].node_def) for name in functions)

    def constants_of(self, function: str) -> int:
        """Returns how many leading arguments of an XLA program are compile-time constants."""
        return self._clusters[function].constants if function in self._clusters else 0

    def scope_of(self, function: str) -> str:
        """Returns the traced function of an XLA program's ops."""
        return self._clusters[function].scope if function in self._clusters else self._request.function
