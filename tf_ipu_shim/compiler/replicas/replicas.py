"""Replicates a program: S shards on a device of N IPUs run N / S times, each time on other IPUs.

Every replica is lowered separately, with its own variables and its own share of the feeds. They meet at collectives
only (`collective_op.cc`). If a configuration says that several instances of a job run one program, it has the replicas
of all instances. Each instance lowers and runs its own. XLA programs that are the same for several replicas are
compiled once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import constant, control_inputs, copy_node
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.machine import selection
from tf_ipu_shim.machine.ids import Chip, Shard
from tf_ipu_shim.runtime.jobs.instances import WHOLE, Share
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_INDEX, _COUNT = vocabulary.REPLICATION_INDEX, vocabulary.REPLICATION_FACTOR
# Where none of these is, all replicas would compute the same: one is enough.
_REPLICA_DEPENDENT = vocabulary.COLLECTIVES | vocabulary.INFEEDS | {_INDEX, _COUNT, vocabulary.OUTFEED_ENQUEUE}
_INSTANCE_DEPENDENT = vocabulary.COLLECTIVES | {_INDEX, _COUNT}


@dataclasses.dataclass(frozen=True)
class Replica:
    """One replica of a program.

    Args:
        count: how many there are.
        group: distinguishes the collectives of this program from other programs'.
        chips: the chip of each shard of this replica; in their own order when left out.
        share: the part of the replicas of a job this instance has.
    """

    index: int = 0
    count: int = 1
    shards: int = 1
    group: str = ""
    chips: tuple[Chip, ...] = ()
    share: Share = WHOLE

    @property
    def total(self) -> int:
        """Number of replicas over all instances."""
        return self.count * self.share.instances

    @property
    def global_index(self) -> int:
        """Index of the replica among all instances' replicas."""
        return self.share.index * self.count + self.index

    def chip(self, shard: Shard) -> Chip:
        """Returns the device's IPU that holds a shard of this replica."""
        return self.chips[shard] if self.chips else Chip(self.index * self.shards + shard)

    def specialise(self, proto: node_def_pb2.NodeDef, serial: int) -> None:
        """Sets the replica-specific attributes of an emitted op."""
        attributes = proto.attr
        if proto.op in vocabulary.COLLECTIVES:
            self._make_collective(proto, serial)
        elif proto.op == vocabulary.RANDOM_SEED:
            attributes["replica"].i = self.global_index
        elif proto.op == vocabulary.SEND_TO_HOST and self.count > 1:
            raise errors_impl.UnimplementedError(
                None,
                None,
                f"{proto.name}: ipu_send_to_host is in a program of {self.count} replicas, each of which "
                f"would send its own {attributes['tensor_name'].s.decode()!r}, but the host receives only "
                "one. Send it through an IPUOutfeedQueue, or use one replica.",
            )
        elif self.count > 1 and proto.op in (vocabulary.OUTFEED_ENQUEUE, vocabulary.INFEED_DEQUEUE):
            self._set_index(proto)

    def _set_index(self, proto: node_def_pb2.NodeDef) -> None:
        proto.attr["replica"].i, proto.attr["replicas"].i = self.index, self.count
        proto.attr["run_group"].s = self.group.encode()

    def _make_collective(self, proto: node_def_pb2.NodeDef, serial: int) -> None:
        attributes = proto.attr
        total = self.count if is_within_instance(proto) else self.total
        size = _group_size(proto, total)
        attributes.pop("replica_group_size", None)
        attributes.pop("replication_factor", None)
        if self.count % size:  # replicas of several instances go together
            attributes["instances"].i, attributes["instance"].i = self.share.instances, self.share.index
            attributes["among_instances"].s = f"collective {serial} {proto.name}".encode()
        kind = b"gather" if proto.op == vocabulary.REPLICA_GATHER else b"sum"
        proto.op = vocabulary.COLLECTIVE
        attributes["kind"].s = kind
        attributes["rendezvous"].i = serial
        self._set_index(proto)
        attributes["group_size"].i, attributes["shards"].i = size, self.shards


def is_within_instance(proto: node_def_pb2.NodeDef) -> bool:
    """Returns whether an op only concerns the replicas of this instance."""
    name = vocabulary.WITHIN_INSTANCE_ATTRIBUTE
    return name in proto.attr and proto.attr[name].b


def make_replicas(
    functions: Functions, num_ipus: int, group: str, order: str = "AUTO", share: Share = WHOLE
) -> list[Replica]:
    """Returns the replicas that a program runs as and the IPUs of their shards."""
    graphs = [functions[name] for name in functions.reached()]
    shards = _shards_of(graphs)
    pipelined = any(_is_in_order(pipeline) for graph in graphs for pipeline in _pipelines(graph))
    ipus_each = selection.ipus_of_replica(shards, num_ipus)
    count = num_ipus // ipus_each
    chips = tuple(map(Chip, range(num_ipus)))
    if count < 2 or all(graph.ops.isdisjoint(_REPLICA_DEPENDENT) for graph in graphs):
        # The IPUs of replicas that do not run, or that no shard is on, keep their places.
        ipus_per_replica = num_ipus if num_ipus % shards else shards
        (used,) = selection.shard_ipus(chips[:ipus_per_replica], order, pipelined=pipelined)
        return [Replica(shards=num_ipus, group=group, chips=(*used, *chips[ipus_per_replica:]), share=share)]
    if num_ipus % ipus_each:
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            f"A program of {shards} shards cannot be replicated over {num_ipus} IPUs: their number has to be a "
            f"multiple of {ipus_each}. Select {ipus_each * count} IPUs for {count} replicas, or {ipus_each} for one.",
        )
    of_replicas = selection.shard_ipus(chips, order, pipelined=pipelined, replicas=count)
    return [Replica(index, count, ipus_each, group, ipus, share) for index, ipus in enumerate(of_replicas)]


def ipus_of_replica(functions: Functions, num_ipus: int) -> int:
    """Returns how many IPUs each replica of a program has."""
    return selection.ipus_of_replica(_shards_of(functions[name] for name in functions.reached()), num_ipus)


def _shards_of(graphs: Iterable[FunctionGraph]) -> int:
    return 1 + max((shard for graph in graphs for shard in _used_shards(graph)), default=0)


def _used_shards(graph: FunctionGraph) -> Iterator[Shard]:
    """Yields the shards that a function uses in its ops and pipeline stages."""
    yield from (annotation.shard or Shard(0) for annotation in graph.annotations.values())
    yield from (Shard(shard) for pipeline in _pipelines(graph) for stage in pipeline.devices for shard in stage)


def _pipelines(graph: FunctionGraph) -> Iterator[PipelineDescription]:
    if not graph.ops.isdisjoint(vocabulary.LOOPS):
        for node in graph.nodes:
            pipeline = PipelineDescription.of(node.proto) if node.op in vocabulary.LOOPS else None
            if pipeline is not None:
                yield pipeline


def _is_in_order(pipeline: PipelineDescription) -> bool:
    """Returns whether pipeline stages are on consecutive IPUs, one each."""
    return pipeline.devices == tuple((stage,) for stage in range(pipeline.stages))


def fold_replica_count(functions: Functions, replica: Replica) -> None:
    """Replaces the ops that depend on the number of replicas: all collectives if there is one replica."""
    if replica.share.problem and _concerns_other_instances(functions):
        raise errors_impl.FailedPreconditionError(None, None, replica.share.problem)
    settled = frozenset({_COUNT}) if replica.total > 1 else vocabulary.COLLECTIVES | {_COUNT, _INDEX}
    spans = replica.share.instances > 1

    def replaced(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if spans and node.op in vocabulary.LOOPS and node.proto.attr["body"].func.name in communicating:
            return [_sequential(node.proto)]
        if node.op not in settled:
            return None
        if node.op in vocabulary.COLLECTIVES:
            return list(_single(node.proto))
        count = replica.count if is_within_instance(node.proto) else replica.total
        return [_constant(node.name, count if node.op == _COUNT else 0, node.proto)]

    communicating = functions.with_ops(vocabulary.COLLECTIVES) if spans else set()
    for name in functions.with_ops(settled) | communicating:
        if name in communicating or not functions[name].ops.isdisjoint(settled):
            functions[name].rewrite(replaced)


def _concerns_other_instances(functions: Functions) -> bool:
    """Returns whether an op of the program depends on the replicas of other instances."""
    return any(
        node.op in _INSTANCE_DEPENDENT and not is_within_instance(node.proto)
        for name in functions.with_ops(_INSTANCE_DEPENDENT)
        for node in functions[name].nodes
    )


def _sequential(loop: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    """Returns a loop with sequential iterations, so that all instances run collectives in one order."""
    new_node = copy_node(loop)
    new_node.attr["parallel_iterations"].i = 1
    return new_node


def replica_functions(functions: Functions, replica: Replica) -> Functions:
    """Returns the functions of one replica, with copies of functions that depend on the replica index."""
    instance_dependent = functions.with_ops(frozenset({_INDEX}))
    if replica.total == 1 or not instance_dependent:
        return functions

    def replaced(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        return [_constant(node.name, replica.global_index, node.proto)] if node.op == _INDEX else None

    copies = functions.with_copies(instance_dependent)
    for name in instance_dependent:
        if _INDEX in copies[name].ops:
            copies[name].rewrite(replaced)
    return copies


def _single(node: node_def_pb2.NodeDef) -> Iterator[node_def_pb2.NodeDef]:
    """Yields the replacement of a collective in one replica: the value itself, or with a new axis for gathers."""
    _group_size(node, 1)
    gathers = node.op == vocabulary.REPLICA_GATHER
    new_node = node_def_pb2.NodeDef(name=node.name, op="ExpandDims" if gathers else "Identity", input=node.input[:1])
    _copy_annotations(node, new_node)
    new_node.attr["T"].type = node.attr["dtype"].type
    if gathers:
        new_node.attr["Tdim"].type = types_pb2.DT_INT32
        yield _constant(f"{node.name}/axis", 0, node)
        new_node.input.append(f"{node.name}/axis:output:0")
    new_node.input.extend(node.input[1:])
    yield new_node


def _constant(name: str, value: int, like: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    node = constant(name, np.int32(value), types_pb2.DT_INT32)
    node.input.extend(control_inputs(like))
    _copy_annotations(like, node)
    return node


def _copy_annotations(source: Any, target: Any) -> None:
    for name in vocabulary.PRIVATE_ATTRIBUTES:
        if name in source.attr:
            target.attr[name].CopyFrom(source.attr[name])


def _group_size(proto: node_def_pb2.NodeDef, count: int) -> int:
    """Returns the consecutive replicas whose values go together."""
    if proto.op == vocabulary.REPLICA_GATHER:
        size = proto.attr["replication_factor"].i
        message = (
            f"{proto.name} is made for a replication_factor of {size}, but the program runs as {count} replica"
            f"{'s' if count > 1 else ''}; expected their number or a divisor of it. Pass the number of IPUs divided "
            "by the number of shards, or the size of groups of replicas."
        )
    else:
        size = proto.attr["replica_group_size"].i or count
        message = (
            f"{proto.name}: The replica group size (got {size}) does not evenly divide the total number of replicas "
            f"(got {count}). Change replica_group_size."
        )
    if count % size:
        raise errors_impl.InvalidArgumentError(None, None, message)
    return int(size)


def run_all_replicas(
    name: str,
    definition: function_pb2.FunctionDef,
    called: Iterable[str],
    device: str,
    variables: Iterable[str],
    group: str,
) -> function_pb2.FunctionDef:
    """Returns the function that runs all replicas at once and returns the first one's results."""
    function = function_pb2.FunctionDef()
    function.signature.name = name
    function.signature.is_stateful = True
    arguments = definition.signature.input_arg
    function.signature.input_arg.extend(arguments)
    for index, attributes in definition.arg_attr.items():
        function.arg_attr[index].CopyFrom(attributes)
    variables = set(variables)
    for index, emitted in enumerate(called):
        call = function.node_def.add(name=f"replica{index}", op=vocabulary.REPLICA_CALL, device=device)
        for argument in arguments:
            tensor_name = argument.name
            if index and tensor_name in variables:
                tensor_name = f"{argument.name}_replica{index}"
                function.signature.input_arg.add(name=tensor_name, type=argument.type)
            call.input.append(tensor_name)
        call.attr["Tin"].list.type.extend(argument.type for argument in arguments)
        call.attr["Tout"].list.type.extend(result.type for result in definition.signature.output_arg)
        call.attr["f"].func.name = emitted
        call.attr["config"].s = call.attr["config_proto"].s = call.attr["executor_type"].s = b""
        call.attr["run_group"].s, call.attr["replica"].i = group.encode(), index
        function.signature.control_output.append(call.name)
        function.control_ret[call.name] = call.name
    for index, result in enumerate(definition.signature.output_arg):
        function.signature.output_arg.add(name=result.name, type=result.type)
        function.ret[result.name] = f"replica0:output:{index}"
    return function
