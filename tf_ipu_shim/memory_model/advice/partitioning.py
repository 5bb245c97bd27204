"""Repartitions a program's layers into more shards or pipeline stages (for advice).

A layer begins where the forward pass reads a variable under a new name. The annotations of the script's ops are written
again as another `ipu_shard` or assignment of stages would do. The stages of a pipeline are reassigned too. The lowering
does the rest.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types, sharding_annotations, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import TensorName, copy_function, data_inputs, is_control, producer_name
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.compiler.placement.placement import forward_name
from tf_ipu_shim.machine.ids import Shard
from tf_ipu_shim.machine.memory import Block, Mode
from tf_ipu_shim.machine.memory.layer_names import layers_of_variables
from tf_ipu_shim.machine.pipelines import pipeline_schedule
from tf_ipu_shim.machine.pipelines.partitioner import bytes_of, smallest_parts
from tf_ipu_shim.machine.pipelines.stage_memory import (
    ConsumedBytes,
    StageLayer,
    StageMemory,
    consumed_by_layers,
    stashed,
)
from tf_ipu_shim.memory_model.walk.analysis_context import AnalysisContext
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_SCALAR = 8  # bytes: such as a metric's, which begins no layer
_NOT_STASHED = frozenset({"Const", vocabulary.READ_VARIABLE}) | vocabulary.SHAPE_QUERIES


class Layer(NamedTuple):
    """A layer and the memory it needs.

    Args:
        name: as far as its ops share it.
        kept_bytes: values of the forward pass that its gradients use.
        made_bytes: values that gradients use, and that it makes or is the first to receive from a feed.
    """

    name: str
    first: str
    nodes: tuple[int, ...]
    weight_bytes: int
    kept_bytes: int
    made_bytes: int = 0
    fed_bytes: int = 0
    inputs: tuple[ConsumedBytes, ...] = ()


class Partition(NamedTuple):
    """A partition: the first layer of each shard or stage.

    Args:
        first_layers: number of the first layer of each.
        bytes: the bytes that the fullest is expected to need.
    """

    first_layers: tuple[int, ...]
    bytes: int


class _ShardMemory:
    """The memory of a shard while layers are added: their weights, and the tensors kept of a mini-batch."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self.bytes = 0.0

    def add(self, layer: tuple[float, int]) -> None:
        """Adds a layer."""
        weights, stashed_bytes = layer
        self.bytes += weights + self._slots * stashed_bytes


class Layers:
    """The layers of a program, found in the function with most ops."""

    def __init__(self, request: ProgramRequest, context: AnalysisContext) -> None:
        self._request = request
        self._function = max(request.library.values(), key=lambda function: len(function.node_def))
        self._nodes: Sequence[node_def_pb2.NodeDef] = self._function.node_def
        nodes = self._nodes
        self._index_of = {node.name: index for index, node in enumerate(nodes)}
        self._forward = {node.name: forward_name(node.name) for node in nodes}
        first = next((n for n, node in enumerate(nodes) if self._forward[node.name] in self._index_of), len(nodes))
        self.trains = first < len(nodes)
        self._sizes = _sizes(context.blocks.values())
        places = dict(_program_arguments(request, self._function))
        self._weights = {name: context.size_of(place) for name, place in places.items()}
        # Layers of Keras are called as their variables begin.
        owners = {name: context.name_of(place) for name, place in places.items()}
        layers = layers_of_variables(owners.values())
        self._owners = {name: layers[owner] for name, owner in owners.items()}
        self._needed = self._kept_for_gradients(first)  # by number of the op whose gradients need it
        self.all = self._with_kept_values(list(self._layers(first)))

    def _layers(self, end: int) -> Iterator[Layer]:
        """Yields the layers of the forward pass, split at the first read of a variable with a new name."""
        begins = list(self._layer_starts(end))
        counted: set[str] = set()
        for place, (name, first) in enumerate(begins):
            last = begins[place + 1][1] if place + 1 < len(begins) else end
            indices = tuple(n for n in range(first if place else 0, last) if not self._is_elsewhere(self._nodes[n]))
            used = {
                tensor_name for n in indices for tensor_name in self._nodes[n].input if tensor_name in self._weights
            } - counted
            counted |= used
            weights = sum(self._weights[tensor_name] for tensor_name in used)
            yield Layer(name, self._first_op(first, last), indices, weights, self._bytes(self._needed_by(indices)))

    def _with_kept_values(self, layers: Sequence[Layer]) -> list[Layer]:
        """Adds to each layer the values it keeps for gradients and receives from earlier layers."""
        home = {index: place for place, layer in enumerate(layers) for index in layer.nodes}
        made_bytes, fed_bytes = [0] * len(layers), [0] * len(layers)
        for name in {producer_name(tensor) for layer in layers for tensor in self._needed_by(layer.nodes)}:
            if self._index_of[name] in home:
                made_bytes[home[self._index_of[name]]] += self._sizes.get(name, 0)
        users, fed = self._consuming_layers(layers)
        makers = {name: home[self._index_of[name]] for name in users if self._index_of[name] in home}
        values = ((maker, users[name], self._sizes.get(name, 0)) for name, maker in makers.items())
        for tensor_name, place in fed.items():
            fed_bytes[place] += _fed_bytes(self._nodes[self._index_of[producer_name(tensor_name)]], tensor_name)
        return [
            layer._replace(made_bytes=made_bytes[place] + fed_bytes[place], fed_bytes=fed_bytes[place], inputs=operands)
            for place, (layer, operands) in enumerate(zip(layers, consumed_by_layers(values, len(layers))))
        ]

    def _consuming_layers(self, layers: Sequence[Layer]) -> tuple[dict[str, set[int]], dict[str, int]]:
        """Returns the layers that consume each op's result, and the first layer that consumes each host input."""
        users: dict[str, set[int]] = {}
        fed: dict[str, int] = {}
        for place, layer in enumerate(layers):
            for tensor_name in (
                tensor_name for index in layer.nodes for tensor_name in data_inputs(self._nodes[index])
            ):
                name = self._viewed(tensor_name)
                node = self._nodes[self._index_of[name]] if name in self._index_of else None
                if node is not None and self._is_elsewhere(node):
                    fed.setdefault(tensor_name, place)
                elif node is not None and node.op not in _NOT_STASHED:
                    users.setdefault(name, set()).add(place)
        return users, fed

    def _layer_starts(self, end: int) -> Iterator[tuple[str, int]]:
        """Yields the names of layers with the index of their first op."""
        last = None
        for index, node in enumerate(self._nodes[:end]):
            read = next(
                (tensor_name for tensor_name in node.input if self._weights.get(tensor_name, 0) > _SCALAR), None
            )
            if read is not None:
                name = self._owners[read] if self._request.is_keras else node.name.rpartition("/")[0] or node.name
                if name != last:
                    yield name, index
                last = name

    def _needed_by(self, indices: Iterable[int]) -> set[str]:
        """Returns the forward values that gradients of some ops need."""
        return {tensor for index in indices for tensor in self._needed.get(index, ())}

    def _first_op(self, begin: int, end: int) -> str:
        """Returns the first op of a layer that computes something."""
        nodes = self._nodes[begin:end]
        return next((node.name for node in nodes if node.op not in _NOT_STASHED), nodes[0].name)

    @staticmethod
    def _is_elsewhere(node: node_def_pb2.NodeDef) -> bool:
        return node.op in vocabulary.HOST_OPS or sharding_annotations.is_on_host(node)

    def _kept_for_gradients(self, first: int) -> dict[int, set[str]]:
        """Returns the forward values that gradients need, by the index of the op they differentiate."""
        found: dict[int, set[str]] = {}
        for node in self._nodes[first:]:
            forward = self._index_of.get(self._forward[node.name] or "")
            for tensor_name in node.input:
                source = self._viewed(tensor_name)
                index = self._index_of.get(source)
                if index is not None and index < first and self._nodes[index].op not in _NOT_STASHED:
                    found.setdefault(index if forward is None else forward, set()).add(source)
        return found

    def _viewed(self, tensor_name: str) -> str:
        name = producer_name(tensor_name)
        while name in self._index_of and self._nodes[self._index_of[name]].op in vocabulary.VIEWS:
            name = producer_name(self._nodes[self._index_of[name]].input[0])
        return name

    def partition(self, by_weight: float, slots: Sequence[int]) -> Partition | None:
        """Returns the partition into parts whose largest memory is least, or None with too few layers."""
        sizes = [(by_weight * layer.weight_bytes, layer.kept_bytes) for layer in self.all]
        memories, largest = [_ShardMemory(slot) for slot in slots], _ShardMemory(max(slots))
        found = smallest_parts(sizes, memories, largest, tolerance=0.001)
        return None if found is None else Partition(tuple(found[0]), int(found[1]))

    def stages(self, by_weight: float, waiting: Sequence[int], recomputes: bool = False) -> Partition | None:
        """Returns the pipeline stages whose largest memory is least, or None with too few layers."""
        grads = float(self.trains)
        parts = [
            StageLayer(
                layer_index,
                by_weight * layer.weight_bytes,
                grads * layer.weight_bytes,
                layer.made_bytes,
                layer.inputs,
                layer.fed_bytes,
            )
            for layer_index, layer in enumerate(self.all)
        ]
        memories = [StageMemory(slots, recomputes) for slots in waiting]
        found = smallest_parts(parts, memories, StageMemory(max(waiting), recomputes=False), tolerance=0.0001)
        if found is None:
            return None
        begins, _ = found
        ends = [*begins[1:], len(parts)]
        needed = [bytes_of(parts[first:end], empty) for first, end, empty in zip(begins, ends, memories)]
        return Partition(tuple(begins), int(max(needed)))

    def apply(self, cut: Partition) -> ProgramRequest:
        """Returns the program with each part on a separate IPU."""
        parts = _parts(cut, len(self.all))
        shards = {n: Shard(shard) for shard, part in enumerate(parts) for layer in part for n in self.all[layer].nodes}
        library = {name: _without_annotations(function) for name, function in self._request.library.items()}
        for index, node in enumerate(library[self._function.signature.name].node_def):
            forward = self._index_of.get(self._forward[node.name] or "")
            shard = shards.get(index if forward is None else forward)
            if shard is not None:
                node.attr[vocabulary.SHARDING_ATTRIBUTE].s = sharding_annotations.sharding_annotation(shard)
                if vocabulary.STAGE_ATTRIBUTE in node.attr:
                    node.attr[vocabulary.STAGE_ATTRIBUTE].i = shard
        for function in library.values():
            for node in function.node_def:
                pipeline = PipelineDescription.of(node)
                if pipeline is not None:
                    described = self._described(pipeline, parts).to_json()
                    node.attr[vocabulary.PIPELINE_ATTRIBUTE].s = described.encode()
        return dataclasses.replace(self._request, library=library)

    def _described(self, pipeline: PipelineDescription, parts: Sequence[range]) -> PipelineDescription:
        indices = [[n for layer in part for n in self.all[layer].nodes] for part in parts]
        stashed_by_part = [self._needed_by(part) for part in indices]
        stashes = [self._stash(part, names) for part, names in zip(indices, stashed_by_part)]
        return dataclasses.replace(
            pipeline,
            devices=tuple((ipu,) for ipu in range(len(parts))),
            kept_bytes=tuple(map(self._bytes, stashed_by_part)),
            input_bytes=tuple(self._bytes(inputs) for inputs, _ in stashes),
            checkpoint_bytes=tuple(self._bytes(checkpoints) for _, checkpoints in stashes),
            kept_tensors=tuple(map(len, stashed_by_part)),
            stashed_tensors=tuple(len(inputs | checkpoints) for inputs, checkpoints in stashes),
        )

    def _stash(self, part: Sequence[int], tensor_names: Iterable[str]) -> tuple[set[str], set[str]]:
        part_nodes = set(part)
        marked = [self._nodes[n].name for n in part if vocabulary.CHECKPOINT_ATTRIBUTE in self._nodes[n].attr]
        return stashed(
            tensor_names,
            self._data_inputs(marked),
            lambda name: self._data_inputs(self._nodes[self._index_of[name]].input),
            lambda name: self._index_of[name] in part_nodes,
        )

    def _data_inputs(self, tensor_names: Iterable[str]) -> Iterator[str]:
        """Yields the inputs of an op, except weights and the like."""
        for name in (self._viewed(tensor_name) for tensor_name in tensor_names if not is_control(tensor_name)):
            index = self._index_of.get(name)
            if index is not None and self._nodes[index].op not in _NOT_STASHED:
                yield name

    def _bytes(self, names: Iterable[str]) -> int:
        return sum(self._sizes.get(name, 0) for name in names)


def in_flight_mini_batches(pipeline: PipelineDescription | None, parts: int) -> list[int]:
    """Returns, for each part, of how many mini-batches it keeps values: several in pipeline stages."""
    if pipeline is None:
        return [1] * parts
    return [
        pipeline_schedule.fifo_slots(pipeline.schedule, parts, stage, pipeline.training) + 1 for stage in range(parts)
    ]


def _parts(cut: Partition, layers: int) -> list[range]:
    return [range(first, end) for first, end in zip(cut.first_layers, [*cut.first_layers[1:], layers])]


def _fed_bytes(node: node_def_pb2.NodeDef, tensor_name: str) -> int:
    """Returns the bytes of a tensor that a host op returns; 0 if unknown."""
    if not {"output_shapes", "output_types"} <= {*node.attr}:  # to ask for one would put it there
        return 0
    shapes, types = node.attr["output_shapes"].list.shape, node.attr["output_types"].list.type
    argument_index = TensorName.parse(tensor_name).position
    if argument_index >= len(shapes) or argument_index >= len(types) or shapes[argument_index].unknown_rank:
        return 0
    sizes = [dimension.size for dimension in shapes[argument_index].dim]
    return 0 if -1 in sizes else math.prod(sizes) * dtypes.as_dtype(types[argument_index]).size


def _sizes(blocks: Iterable[Block]) -> dict[str, int]:
    """Returns the bytes of each op's largest result."""
    found: dict[str, int] = {}
    pending = list(blocks)
    while pending:
        block = pending.pop()
        pending.extend(inner for step in block.steps for inner in step.inside)
        for value in block.values:
            if value.mode in (Mode.NEW, Mode.IN_PLACE, Mode.BORROWED):
                found[value.owner] = max(found.get(value.owner, 0), value.bytes)
    return found


def _program_arguments(request: ProgramRequest, function: function_pb2.FunctionDef) -> Iterator[tuple[str, int]]:
    """Yields which program arguments a function's variables are, with their names in the function."""
    callers: dict[str, tuple[str, node_def_pb2.NodeDef]] = {}
    for name, caller in request.library.items():
        for node in caller.node_def:
            for called in op_types.called_functions(node):
                callers.setdefault(called, (name, node))
    for index, argument in enumerate(function.signature.input_arg):
        if argument.type == op_types.RESOURCE:
            place = _program_argument(request, callers, function.signature.name, index)
            if place is not None:
                yield argument.name, place


def _program_argument(
    request: ProgramRequest, callers: Mapping[str, tuple[str, node_def_pb2.NodeDef]], name: str, index: int
) -> int | None:
    """Returns which program argument a function's argument is."""
    while name != request.function:
        if name not in callers:
            return None
        name, node = callers[name]
        index += 1 if node.op in vocabulary.BRANCHES else 0
        tensor_names = data_inputs(node)
        arguments = [argument.name for argument in request.library[name].signature.input_arg]
        if index >= len(tensor_names) or tensor_names[index] not in arguments:
            return None
        index = arguments.index(tensor_names[index])
    return index


def _without_annotations(function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    copy = copy_function(function)
    for node in copy.node_def:
        location = sharding_annotations.shard_of(node)
        if location is not None and location.shard is not None and not sharding_annotations.is_on_host(node):
            del node.attr[vocabulary.SHARDING_ATTRIBUTE]
    return copy
