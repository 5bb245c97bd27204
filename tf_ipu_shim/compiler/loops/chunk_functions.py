"""Builds the functions of a chunked loop: condition, body, and the inner loop that XLA compiles."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.checks.host_ops import name_iterator
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import Chunks, FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.ir.trips import Trips
from tf_ipu_shim.compiler.loops.function_builder import FunctionBuilder
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_INT, _LONG = types_pb2.DT_INT32, types_pb2.DT_INT64


@dataclasses.dataclass(frozen=True)
class Feeds:
    """The infeeds and outfeeds of a loop's iteration.

    Args:
        infeeds: the op that dequeues an element; none or one.
        iterators: the ops that return handles of iterators.
        trips: how many iterations the loop has.
        most: how many iterations a chunk has at most.
    """

    infeeds: Sequence[Node]
    outfeeds: Sequence[Node]
    iterators: Sequence[Node]
    trips: Trips
    most: int


def build_chunk_functions(loop: Node, functions: Functions, feeds: Feeds) -> Chunks:
    """Builds the functions of a loop over chunks."""
    body = functions[loop.proto.attr["body"].func.name]
    names = _Names(*(functions.fresh_name(f"{body.name}_chunk_{part}") for part in _Names._fields))
    for function in (
        _outer_condition(body, names),
        _outer_body(body, names, feeds),
        _inner_condition(body, names, feeds),
        _inner_body(body, names, feeds),
    ):
        functions.add(function)
    return Chunks(names.outer_condition, names.outer_body, feeds.trips)


class _Names(NamedTuple):
    """Names of the new functions."""

    outer_condition: str
    outer_body: str
    inner_condition: str
    inner_body: str


def _outer_arguments(writer: FunctionBuilder, body: FunctionGraph) -> list[str]:
    counters = [writer.argument(name, _LONG) for name in ("chunk_done", "chunk_total")]
    for argument, kind in body.arguments.items():
        writer.argument(argument, kind)
    return counters


def _outer_condition(body: FunctionGraph, names: _Names) -> FunctionGraph:
    writer = FunctionBuilder(names.outer_condition, body.traced)
    writer.node("chunk_goes_on", "Less", _outer_arguments(writer, body), host=True, T=_LONG)
    writer.result(types_pb2.DT_BOOL, "chunk_goes_on:z:0")
    return writer.graph


def _outer_body(body: FunctionGraph, names: _Names, feeds: Feeds) -> FunctionGraph:
    """Fetches the elements of a chunk, runs its iterations and enqueues their outputs."""
    writer = FunctionBuilder(names.outer_body, body.traced)
    done, total = _outer_arguments(writer, body)
    begin = _begin_chunk(writer, feeds, [done, total])
    count, element = f"{begin}:count:0", _element_types(feeds)
    first = writer.constant("chunk_first", np.zeros([], np.int32))
    buffers = _empty_buffers(writer, feeds)
    carried = _carried(body, feeds)
    types = [
        _INT,
        _INT,
        *element,
        *(kind for kind, _ in _outfeed_tensors(feeds)),
        *(body.arguments[name] for name in carried),
    ]
    components = [f"{begin}:components:{index}" for index in range(len(element))]
    loop = writer.node("chunk_loop", "While", [first, count, *components, *buffers, *carried])
    loop.attr["T"].list.type.extend(types)
    loop.attr["cond"].func.name, loop.attr["body"].func.name = names.inner_condition, names.inner_body
    loop.attr["parallel_iterations"].i = 10
    writer.must_run(loop.name)
    results = [f"{loop.name}:output:{index}" for index in range(2 + len(element), len(types))]
    _send_outputs(writer, feeds, count, results[: len(buffers)])
    writer.result(_LONG, f"{begin}:next:0")
    writer.result(_LONG, total)
    remaining = dict(zip(carried, results[len(buffers) :]))
    for name, kind in body.arguments.items():
        writer.result(kind, remaining.get(name, name) if kind != op_types.RESOURCE else name)
    return writer.graph


def _begin_chunk(writer: FunctionBuilder, feeds: Feeds, counters: Sequence[str]) -> str:
    """Adds the op that begins a chunk and returns its iteration count and elements."""
    begin = writer.node("chunk_begin", vocabulary.CHUNK_BEGIN, counters)
    begin.attr["chunk"].i = feeds.most
    for node in feeds.infeeds:
        if not name_iterator(begin, node.producers[0]):
            begin.input.append(node.inputs[0])
    for attribute in ("output_types", "output_shapes"):
        begin.attr[attribute].list.SetInParent()
        for node in feeds.infeeds:
            begin.attr[attribute].CopyFrom(node.proto.attr[attribute])
    return begin.name


def _empty_buffers(writer: FunctionBuilder, feeds: Feeds) -> list[str]:
    """Adds a buffer, sized for the largest chunk, for each enqueued tensor."""
    buffers = []
    for index, (kind, shape) in enumerate(_outfeed_tensors(feeds)):
        zero = writer.constant(f"chunk_zero_{index}", np.zeros([], dtypes.as_dtype(kind).as_numpy_dtype))
        size = writer.constant(f"chunk_size_{index}", np.array([feeds.most, *shape], np.int32))
        writer.node(f"chunk_buffer_{index}", "Fill", [size, zero], T=kind, index_type=_INT)
        buffers.append(f"chunk_buffer_{index}:output:0")
    return buffers


def _send_outputs(writer: FunctionBuilder, feeds: Feeds, count: str, buffers: Sequence[str]) -> None:
    """Adds one op per outfeed that enqueues the outputs of a chunk."""
    waiting = iter(buffers)
    for index, outfeed in enumerate(feeds.outfeeds):
        tensors = itertools.islice(waiting, len(outfeed.proto.attr["output_types"].list.type))
        node = writer.node(f"chunk_enqueue_{index}", vocabulary.CHUNK_ENQUEUE, [count, *tensors])
        for attribute in ("output_types", "outfeed_mode", "feed_id"):
            node.attr[attribute].CopyFrom(outfeed.proto.attr[attribute])
        writer.must_run(node.name)


def _inner_condition(body: FunctionGraph, names: _Names, feeds: Feeds) -> FunctionGraph:
    writer = FunctionBuilder(names.inner_condition, body.traced)
    _inner_arguments(writer, body, feeds)
    writer.node("chunk_goes_on", "Less", ["chunk_index", "chunk_count"], T=_INT)
    writer.result(types_pb2.DT_BOOL, "chunk_goes_on:z:0")
    return writer.graph


def _inner_body(body: FunctionGraph, names: _Names, feeds: Feeds) -> FunctionGraph:
    """Builds the original body with slices of fetched elements as input and buffers as output."""
    writer = FunctionBuilder(names.inner_body, body.traced)
    _inner_arguments(writer, body, feeds)
    renamed = _elements(writer, feeds)
    buffers, removed = _buffers(writer, feeds, renamed)
    for node in body.nodes:
        if node not in removed:
            controls = _with_substitutes(node.controls, removed)
            writer.add(
                _with_inputs(node, [renamed.get(tensor_name, tensor_name) for tensor_name in node.inputs], controls)
            )
    writer.node("chunk_next", "AddV2", ["chunk_index", writer.constant("chunk_one", np.int32(1))], T=_INT)
    writer.result(_INT, "chunk_next:z:0")
    writer.result(_INT, "chunk_count")
    for index, kind in enumerate(_element_types(feeds)):
        writer.result(kind, f"chunk_elements_{index}")
    for kind, buffer in buffers:
        writer.result(kind, buffer)
    returns = dict(zip(body.arguments, body.returns))
    for name in _carried(body, feeds):
        writer.result(body.arguments[name], renamed.get(returns[name], returns[name]))
    for name in _with_substitutes(body.control_returns, removed):
        writer.must_run(name)
    return writer.graph


def _elements(writer: FunctionBuilder, feeds: Feeds) -> dict[str, str]:
    """Slices an iteration's element from the fetched ones; maps original tensors to slices."""
    renamed: dict[str, str] = {}
    for node in feeds.infeeds:
        shapes = node.proto.attr["output_shapes"].list.shape
        for index, (kind, shape) in enumerate(zip(_element_types(feeds), shapes)):
            sizes = [dimension.size for dimension in shape.dim]
            renamed[f"{node.name}:components:{index}"] = _slice(writer, f"chunk_element_{index}", kind, sizes)
    return renamed


def _with_substitutes(nodes: Iterable[Node], removed: Mapping[Node, Sequence[str]]) -> list[str]:
    """Returns op names, with removed ops replaced by their substitutes."""
    return [name for node in nodes for name in removed.get(node, [node.name])]


def _with_inputs(node: Node, inputs: Sequence[str], controls: Iterable[str]) -> node_def_pb2.NodeDef:
    """Returns an op with other inputs; the same NodeDef if nothing changes."""
    new_inputs = [*inputs, *(f"^{name}" for name in dict.fromkeys(controls))]
    if new_inputs == list(node.proto.input):
        return node.proto
    new_node = copy_node(node.proto)
    del new_node.input[:]
    new_node.input.extend(new_inputs)
    return new_node


def _buffers(
    writer: FunctionBuilder, feeds: Feeds, renamed: Mapping[str, str]
) -> tuple[list[tuple[int, str]], dict[Node, list[str]]]:
    """Writes outputs into buffers; returns the buffers and the replacements of the removed ops."""
    buffers: list[tuple[int, str]] = []
    removed: dict[Node, list[str]] = {node: [] for node in (*feeds.infeeds, *feeds.iterators)}
    shapes = iter(_outfeed_tensors(feeds))
    for outfeed in feeds.outfeeds:
        removed[outfeed] = []
        before = [f"^{control.name}" for control in outfeed.controls if control not in removed]
        for tensor_name in outfeed.inputs:
            kind, sizes = next(shapes)
            index = len(buffers)
            name = f"chunk_sent_{index}"
            shape = writer.constant(f"{name}/shape", np.array([1, *sizes], np.int32))
            row = writer.node(
                f"{name}/row", "Reshape", [renamed.get(tensor_name, tensor_name), shape], T=kind, Tshape=_INT
            )
            at = _position(writer, f"{name}/at", len(sizes))
            writer.node(
                name,
                "XlaDynamicUpdateSlice",
                [f"chunk_buffers_{index}", f"{row.name}:output:0", at, *before],
                T=kind,
                Tindices=_INT,
            )
            buffers.append((kind, f"{name}:output:0"))
            removed[outfeed].append(name)
        if not outfeed.inputs:
            removed[outfeed] = [control.name for control in outfeed.controls if control not in removed]
    return buffers, removed


def _slice(writer: FunctionBuilder, name: str, kind: int, sizes: Sequence[int]) -> str:
    size = writer.constant(f"{name}/size", np.array([1, *sizes], np.int32))
    shape = writer.constant(f"{name}/shape", np.array(sizes, np.int32))
    stacked = name.replace("element_", "elements_")
    at = _position(writer, f"{name}/at", len(sizes))
    writer.node(f"{name}/row", "XlaDynamicSlice", [stacked, at, size], T=kind, Tindices=_INT)
    writer.node(name, "Reshape", [f"{name}/row:output:0", shape], T=kind, Tshape=_INT)
    return f"{name}:output:0"


def _position(writer: FunctionBuilder, name: str, axes: int) -> str:
    zero = writer.constant(f"{name}/zero", np.int32(0))
    node = writer.node(name, "Pack", ["chunk_index", *[zero] * axes], T=_INT)
    node.attr["N"].i = 1 + axes
    return f"{name}:output:0"


def _inner_arguments(writer: FunctionBuilder, body: FunctionGraph, feeds: Feeds) -> None:
    writer.argument("chunk_index", _INT)
    writer.argument("chunk_count", _INT)
    for index, kind in enumerate(_element_types(feeds)):
        writer.argument(f"chunk_elements_{index}", kind)
    for index, (kind, _) in enumerate(_outfeed_tensors(feeds)):
        writer.argument(f"chunk_buffers_{index}", kind)
    for name in _carried(body, feeds):
        writer.argument(name, body.arguments[name])


def _carried(body: FunctionGraph, feeds: Feeds) -> list[str]:
    """Returns the original loop variables that the new loop keeps: all but iterator handles."""
    handles = {node.inputs[0] for node in feeds.infeeds}
    return [name for name in body.arguments if name not in handles]


def _element_types(feeds: Feeds) -> list[int]:
    return [kind for node in feeds.infeeds for kind in node.proto.attr["output_types"].list.type]


def _outfeed_tensors(feeds: Feeds) -> list[tuple[int, list[int]]]:
    """Returns dtype and shape of each tensor that an iteration enqueues."""
    return [
        (kind, [dimension.size for dimension in shape.dim])
        for node in feeds.outfeeds
        for kind, shape in zip(node.proto.attr["output_types"].list.type, node.proto.attr["output_shapes"].list.shape)
    ]
