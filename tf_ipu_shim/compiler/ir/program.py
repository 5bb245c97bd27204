"""Defines the data of a compilation: the request, XLA programs (clusters), exchanges and the lowered program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.machine.ids import Chip, Device
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2


@dataclasses.dataclass(frozen=True)
class ProgramRequest:
    """A call of a traced function, with the known properties of its arguments at the first run.

    Args:
        arg_types: `DataType` of each argument.
        arg_shapes: shape of each argument; `()` for resources.
        variable_names: for resources the variable's name, else `""`.
        variable_types: for resources the variable's `DataType`, 0 if unknown.
        single_op: whether the function is one op of a graph, not a program of the script.
    """

    name: str
    function: str
    ordinal: Device
    library: Mapping[str, function_pb2.FunctionDef]
    arg_types: Sequence[int]
    arg_shapes: Sequence[tuple[int, ...]]
    variable_names: Sequence[str]
    variable_types: Sequence[int]
    variable_shapes: Sequence[tuple[int, ...]]
    single_op: bool = False

    @property
    def is_keras(self) -> bool:
        """Returns whether a Keras model created the program."""
        entry = self.library.get(self.function)
        return entry is not None and any(vocabulary.KERAS_ATTRIBUTE in node.attr for node in entry.node_def)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """One XLA program: the work of one IPU in one phase.

    Args:
        phase: its place among the programs of that IPU.
        function: the name of its FunctionDef, whose arguments are constants, then values, then resources.
        inputs: the tensors it consumes, in the order of the function's arguments, named as in the caller.
        input_types: their `DataType`s.
        outputs: its result tensors, named as in the traced function.
        constants: the number of inputs that XLA must know when it compiles.
        scope: the traced function of its ops.
    """

    chip: Chip
    phase: int
    function: str
    inputs: Sequence[str]
    input_types: Sequence[int]
    outputs: Sequence[str]
    constants: int
    scope: str


@dataclasses.dataclass(frozen=True)
class Exchange:
    """A tensor copied from one IPU to another."""

    tensor: str
    source: Chip
    destination: Chip
    scope: str


class ReplicaVariable(NamedTuple):
    """A further replica's copy of a variable."""

    argument: int
    chip: Chip


@dataclasses.dataclass
class LoweredProgram:
    """The result of lowering a traced function.

    Args:
        node: the op to run instead of the call; its inputs are `inputs`, then `replica_variables`.
        variable_chips: for each argument the chip that stores that variable; -1 for other arguments.
        clusters: all XLA programs, including loop bodies.
        exchanges: all exchanges between IPUs, including loop bodies.
        replicas: how often it runs at the same time.
        shard_chips: the chip of each shard of the first replica.
        first_replica: the function that the first of several replicas runs.
        replica_variables: for each further replica's copy of a variable the argument, and the chip that stores it.
        run_group: the key of its serialised runs, for the ops of feeds and replicas; empty without.
        chunked_loops: for a function that runs several iterations at once: the loop for the memory plan. A real IPU
            runs iterations one by one. None if there is no such function.
        planned_functions: the functions of these loops, which never run.
        planned_clusters: the XLA programs of these loops.
        result_shapes: the shapes of its results, None for one that cannot be inferred; known once its memory is
            planned.
        enqueues: how often one run enqueues to each outfeed, by its feed id.
        traced: for each function that a pass made, and that XLA programs run, the traced function it was made of.
    """

    node: node_def_pb2.NodeDef
    functions: list[function_pb2.FunctionDef]
    variable_chips: list[Chip]
    inputs: list[int]
    clusters: list[Cluster] = dataclasses.field(default_factory=list)
    exchanges: list[Exchange] = dataclasses.field(default_factory=list)
    replicas: int = 1
    shards: int = 1
    shard_chips: tuple[Chip, ...] = ()
    first_replica: str = ""
    replica_variables: list[ReplicaVariable] = dataclasses.field(default_factory=list)
    run_group: str = ""
    chunked_loops: dict[str, node_def_pb2.NodeDef | None] = dataclasses.field(default_factory=dict)
    planned_functions: list[function_pb2.FunctionDef] = dataclasses.field(default_factory=list)
    planned_clusters: list[Cluster] = dataclasses.field(default_factory=list)
    result_shapes: list[tuple[int, ...] | None] = dataclasses.field(default_factory=list)
    enqueues: dict[str, int] = dataclasses.field(default_factory=dict)
    traced: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def has_chunks(self) -> bool:
        """Returns whether one of its loops runs several iterations in one XLA program."""
        return bool(self.chunked_loops)

    @property
    def programs(self) -> list[str]:
        """The functions of the XLA programs; several replicas may share one."""
        return list(dict.fromkeys(cluster.function for cluster in self.clusters))
