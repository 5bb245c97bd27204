"""Rewrites loops, branches and calls that span several IPUs to run emitted functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import Chunks, FunctionGraph
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.location import HOST
from tf_ipu_shim.compiler.ir.node_defs import constant
from tf_ipu_shim.compiler.ir.trips import Trips
from tf_ipu_shim.compiler.placement.placement import Placement
from tf_ipu_shim.machine.ids import Shard
from tf_ipu_shim.tf_private.protos import attr_value_pb2, node_def_pb2, types_pb2

# Emits a function: (name, placement, shards of its arguments, whether it is a loop body) -> the emitted name. The shard
# of each result comes with it: None for the host or several.
Emit = Callable[[str, Placement, Mapping[str, Shard], bool], "tuple[str, list[Shard | None]]"]
_LONG = types_pb2.DT_INT64
CHUNK_COUNTERS = 2
"""The number of loop variables that a loop over chunks adds before those of its loop."""


def emit_functions(
    proto: node_def_pb2.NodeDef,
    placement: Placement,
    values: Sequence[Shard | None],
    graphs: Functions,
    emit: Emit,
) -> Sequence[Shard | None]:
    """Emits the functions of a loop, branch or call and makes the op run them."""
    body = proto.attr["body"].func.name if proto.op in vocabulary.LOOPS else None
    if body is not None:
        # From the second iteration on, a loop variable is on the shard where the body leaves it.
        values = _carried_shards(graphs[body], placement.functions[body], values)
    results: Sequence[Shard | None] = []
    emitted: dict[str, str] = {}
    for called in dict.fromkeys(op_types.called_functions(proto)):
        shards = {name: shard for name, shard in zip(graphs[called].arguments, values) if shard is not None}
        emitted[called], remaining = emit(called, placement.functions[called], shards, body is not None)
        if body is None or called == body:
            results = remaining
    for _, function in op_types.function_values(proto):
        function.name = emitted[function.name]
    if proto.op not in vocabulary.CALLS:
        # Only decomposed loops and branches can have parts on several devices.
        proto.attr["_lower_using_switch_merge"].CopyFrom(attr_value_pb2.AttrValue(b=True))
    return results


def _carried_shards(body: FunctionGraph, placement: Placement, initial: Sequence[Shard | None]) -> list[Shard | None]:
    carried: list[Shard | None] = []
    for start, tensor in zip(initial, body.returns):
        producer = body.producer(tensor)
        carried.append(start if producer is None else placement.locations.get(producer, HOST).shard)
    return carried


def loop_over_chunks(proto: node_def_pb2.NodeDef, chunks: Chunks) -> list[node_def_pb2.NodeDef]:
    """Turns a loop into one over chunks, whose first variables count finished iterations and all iterations."""
    start = _add_constant(proto, "done", 0)
    nodes = [start, *_trip_count_ops(proto, chunks.trips)]
    for counter in (nodes[-1], start):
        proto.input.insert(0, f"{counter.name}:output:0")
        proto.attr["T"].list.type.insert(0, _LONG)
    proto.attr["cond"].func.name, proto.attr["body"].func.name = chunks.functions
    for of_single_iterations in ("output_shapes", "_num_original_outputs"):
        if of_single_iterations in proto.attr:
            del proto.attr[of_single_iterations]
    return nodes


def _add_constant(loop: node_def_pb2.NodeDef, name: str, value: int, kind: int = _LONG) -> node_def_pb2.NodeDef:
    return constant(f"{loop.name}/ipu_chunks_{name}", value, kind, loop)


def _trip_count_ops(loop: node_def_pb2.NodeDef, trips: Trips) -> list[node_def_pb2.NodeDef]:
    """Returns ops that compute a loop's trip count; the last op returns it."""
    if not trips.limits:
        return [_add_constant(loop, "total", trips.most)]
    limits = [
        _add_constant(loop, f"limit_{index}", trip_limit.constant, trip_limit.type)
        for index, trip_limit in enumerate(trips.limits)
    ]
    total = node_def_pb2.NodeDef(name=f"{loop.name}/ipu_chunks_total", op=vocabulary.LOOP_TOTAL, device=loop.device)
    total.input.extend(loop.input[limit.counter] for limit in trips.limits)
    total.input.extend(
        f"{constant.name}:output:0" if trip_limit.limit < 0 else loop.input[trip_limit.limit]
        for trip_limit, constant in zip(trips.limits, limits)
    )
    total.attr["T"].list.type.extend(limit.type for limit in trips.limits)
    total.attr["most"].i = trips.most
    return [*(constant for trip_limit, constant in zip(trips.limits, limits) if trip_limit.limit < 0), total]
