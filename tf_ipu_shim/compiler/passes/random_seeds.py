"""Derives a program's random numbers from the device's seed.

XLA's stateful random ops ignore seeds. They become stateless ones here. Their seed starts from an op on the host, with
new numbers for every run. Calls, loops and branches pass it on; a loop increments it.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Sequence

import numpy as np

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node, Result
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import constant, copy_node
from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2

_SEED_ARGUMENT = "ipu_random_seed"

# Stateful op -> stateless op, the place of the seed input, and each attribute's name in the two.
_STATELESS: dict[str, tuple[str, int, dict[str, str]]] = {
    "RandomUniform": ("StatelessRandomUniform", 1, {"dtype": "dtype", "T": "T"}),
    "RandomStandardNormal": ("StatelessRandomNormal", 1, {"dtype": "dtype", "T": "T"}),
    "TruncatedNormal": ("StatelessTruncatedNormal", 1, {"dtype": "dtype", "T": "T"}),
    "RandomUniformInt": ("StatelessRandomUniformInt", 1, {"Tout": "dtype", "T": "T"}),
    "Multinomial": ("StatelessMultinomial", 2, {"output_dtype": "output_dtype", "T": "T"}),
}
_HALVES = (types_pb2.DT_HALF, types_pb2.DT_BFLOAT16)


def add_seeds(functions: Functions, ordinal: Device) -> None:
    """Sets explicit seeds on all random ops."""
    random = functions.with_ops(frozenset(_STATELESS))
    if functions.entry in random:
        seeder = _Seeder(functions, random)
        if any(map(seeder.is_random, functions[functions.entry].nodes)):
            seeder.seed_program(ordinal)


class _Use(enum.Enum):
    """How a function is run."""

    PLAIN = enum.auto()
    SEEDED = enum.auto()  # with a seed
    BODY = enum.auto()  # as a loop's body, which passes on another seed


class _Seeder:
    """Passes seeds to the functions that draw random numbers, directly or in functions they run."""

    def __init__(self, functions: Functions, random: set[str]) -> None:
        self._functions = functions
        self._random = random
        self._versions: dict[tuple[str, _Use], str] = {}

    def is_random(self, node: Node) -> bool:
        """Returns whether an op draws random numbers."""
        return node.op in _STATELESS or not self._random.isdisjoint(op_types.called_functions(node.proto))

    def seed_program(self, ordinal: Device) -> None:
        """Adds seeds to the program."""
        functions, entry = self._functions, self._functions[self._functions.entry]
        explicit, restarts = self._explicit_seed(entry.name), self._restarts_each_run()
        for name, uses in self._uses().items():
            for use in uses - {_Use.PLAIN}:
                self._versions[name, use] = name
                if len(uses) > 1:
                    copy = functions[name].copy(functions.fresh_name(name))
                    functions.add(copy)
                    self._versions[name, use] = copy.name
        for (_, use), name in self._versions.items():
            if use is _Use.BODY:
                self._take_and_give_seed(functions[name])
            else:
                self._take_seed(functions[name])
        if restarts:
            self._seed(entry, f"{_SEED_ARGUMENT}:output:0", before=[_constant(_SEED_ARGUMENT, _low_and_high(explicit))])
            return
        device_seed = node_def_pb2.NodeDef(name=_SEED_ARGUMENT, op=vocabulary.RANDOM_SEED)
        device_seed.attr["ordinal"].i = ordinal
        device_seed.attr["explicit_seed"].i = explicit
        self._seed(entry, f"{_SEED_ARGUMENT}:seed:0", before=[device_seed])

    def _uses(self) -> dict[str, set[_Use]]:
        uses = {self._functions.entry: {_Use.PLAIN}}
        for graph in map(self._functions.__getitem__, self._functions.reached()):
            for node in graph.nodes:
                if node.op in vocabulary.FUNCTION_ATTRIBUTES:
                    is_random = self.is_random(node)
                    for attribute, function in op_types.function_values(node.proto):
                        use = _use_of(node, attribute) if is_random else _Use.PLAIN
                        uses.setdefault(function.name, set()).add(use)
        return uses

    def _take_seed(self, graph: FunctionGraph) -> None:
        graph.arguments[_SEED_ARGUMENT] = types_pb2.DT_INT32
        self._seed(graph, _SEED_ARGUMENT)

    def _take_and_give_seed(self, graph: FunctionGraph) -> None:
        """Adds a seed to a loop's body and returns another for the next iteration."""
        graph.arguments[_SEED_ARGUMENT] = types_pb2.DT_INT32
        following = _plus(f"{_SEED_ARGUMENT}/next", _SEED_ARGUMENT, (1, 0))
        self._seed(graph, _SEED_ARGUMENT, after=following)
        graph.results.append(Result(_SEED_ARGUMENT, types_pb2.DT_INT32, _sum_of(following)))

    def _seed(
        self,
        graph: FunctionGraph,
        seed: str,
        before: Sequence[node_def_pb2.NodeDef] = (),
        after: Sequence[node_def_pb2.NodeDef] = (),
    ) -> None:
        def seeded(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
            if node.op in _STATELESS:
                salted = _plus(f"{node.name}/{vocabulary.SEED_NAME}", seed, (0, _salt(node.name)))
                return [*salted, *_stateless(node.proto, _sum_of(salted))]
            if node.op in vocabulary.FUNCTION_ATTRIBUTES and self.is_random(node):
                inside = _split(node.name, seed)
                return [*inside, self._with_seed(node, f"{inside[-1].name}:output:0")]
            return None

        graph.rewrite(seeded, before, after)

    def _with_seed(self, node: Node, seed: str) -> node_def_pb2.NodeDef:
        """Returns a loop, branch or call that passes a seed to its functions."""
        new_node = copy_node(node.proto)
        for attribute, function in op_types.function_values(new_node):
            function.name = self._versions[function.name, _use_of(node, attribute)]
        is_loop = node.op in vocabulary.LOOPS
        del new_node.input[:]
        new_node.input.extend([*node.inputs, seed, *(f"^{control.name}" for control in node.controls)])
        new_node.attr["T" if is_loop else "Tin"].list.type.append(types_pb2.DT_INT32)
        if is_loop and new_node.attr["output_shapes"].list.shape:
            new_node.attr["output_shapes"].list.shape.add().dim.add(size=2)
        return new_node

    def _restarts_each_run(self) -> bool:
        """Returns whether all random ops restart with the same numbers in every run."""
        graphs = [self._functions[name] for name in self._functions.reached()]
        random = [node.proto for graph in graphs for node in graph.nodes if node.op in _STATELESS]
        return all(vocabulary.RESTARTING_ATTRIBUTE in proto.attr for proto in random) and all(
            proto.attr[vocabulary.RESTARTING_ATTRIBUTE].b for proto in random
        )

    def _explicit_seed(self, name: str) -> int:
        """Returns a number derived from the seeds that a script gave its ops; 0 without any."""
        seeds: list[int] = []
        for node in self._functions[name].nodes:
            if node.op in _STATELESS:
                seeds.extend(node.proto.attr[seed].i if seed in node.proto.attr else 0 for seed in ("seed", "seed2"))
            called = op_types.called_functions(node.proto)
            seeds.extend(self._explicit_seed(function) for function in called if function != name)
        return zlib.crc32(repr(seeds).encode()) | 1 if any(seeds) else 0


def _use_of(node: Node, attribute: str) -> _Use:
    return _Use.BODY if node.op in vocabulary.LOOPS and attribute == "body" else _Use.SEEDED


def _split(name: str, seed: str) -> list[node_def_pb2.NodeDef]:
    """Returns ops that derive an independent seed for a function's body."""
    salted = _plus(f"{name}/{vocabulary.SEED_NAME}", seed, (0, _salt(name)))
    shape = _constant(f"{name}/{vocabulary.SPLIT_SEED_NAME}/shape", np.array([2], np.int32))
    split = node_def_pb2.NodeDef(name=f"{name}/{vocabulary.SPLIT_SEED_NAME}", op="StatelessRandomUniformFullInt")
    split.input.extend([f"{shape.name}:output:0", _sum_of(salted)])
    split.attr["dtype"].type = split.attr["T"].type = split.attr["Tseed"].type = types_pb2.DT_INT32
    return [*salted, shape, split]


def _stateless(node: node_def_pb2.NodeDef, seed: str) -> list[node_def_pb2.NodeDef]:
    op, index, attributes = _STATELESS[node.op]
    inputs = list(node.input)
    inputs.insert(index, seed)
    new_node = node_def_pb2.NodeDef(name=node.name, op=op, device=node.device, input=inputs)
    for name, value in node.attr.items():
        if name in attributes or name.startswith("_"):
            new_node.attr[attributes.get(name, name)].CopyFrom(value)
    new_node.attr["Tseed"].type = types_pb2.DT_INT32
    if op != "StatelessMultinomial" or new_node.attr["T"].type not in _HALVES:
        return [new_node]
    # XLA's kernel draws from float32 logits only. Checked on TensorFlow 2.15.1 and 2.21.0.
    cast = node_def_pb2.NodeDef(name=f"{node.name}/ipu_logits", op="Cast", input=[new_node.input[0]])
    cast.attr["SrcT"].type, cast.attr["DstT"].type = new_node.attr["T"].type, types_pb2.DT_FLOAT
    for name, value in new_node.attr.items():
        if name.startswith("_"):
            cast.attr[name].CopyFrom(value)
    new_node.attr["T"].type = types_pb2.DT_FLOAT
    new_node.input[0] = f"{cast.name}:y:0"
    return [cast, new_node]


def _plus(name: str, seed: str, salts: tuple[int, int]) -> list[node_def_pb2.NodeDef]:
    salt = _constant(f"{name}/salt", np.array(salts, np.int32))
    added = node_def_pb2.NodeDef(name=name, op="AddV2", input=[seed, f"{salt.name}:output:0"])
    added.attr["T"].type = types_pb2.DT_INT32
    return [salt, added]


def _sum_of(plus: Sequence[node_def_pb2.NodeDef]) -> str:
    return f"{plus[-1].name}:z:0"


def _constant(name: str, value: np.ndarray) -> node_def_pb2.NodeDef:
    return constant(name, value, types_pb2.DT_INT32)


def _low_and_high(seed: int) -> np.ndarray:
    return np.array([seed & 0x7FFFFFFF, seed >> 31], np.int32)


def _salt(name: str) -> int:
    return int(np.uint32(zlib.crc32(name.encode())).astype(np.int32))
