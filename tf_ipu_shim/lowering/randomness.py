"""Makes a program's random numbers follow from the device's seed.

XLA's stateful random ops know no seed. They become stateless ones here, whose seed starts from an op on the host (new
numbers for every run) and is handed down through calls, loops and branches; a loop counts it up as it goes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
from tensorflow.core.framework import function_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import tensor_util

from tf_ipu_shim.lowering import op_types, vocabulary
from tf_ipu_shim.lowering.origins import Origins

_SEED_ARGUMENT = "ipu_random_seed"

# Stateful op -> stateless op, the place of the seed input, and each attribute's name in the two.
_STATELESS: dict[str, tuple[str, int, dict[str, str]]] = {
    "RandomUniform": ("StatelessRandomUniform", 1, {"dtype": "dtype", "T": "T"}),
    "RandomStandardNormal": ("StatelessRandomNormal", 1, {"dtype": "dtype", "T": "T"}),
    "TruncatedNormal": ("StatelessTruncatedNormal", 1, {"dtype": "dtype", "T": "T"}),
    "RandomUniformInt": ("StatelessRandomUniformInt", 1, {"Tout": "dtype", "T": "T"}),
    "Multinomial": ("StatelessMultinomial", 2, {"output_dtype": "output_dtype", "T": "T"}),
}


def with_seeds(
    library: Mapping[str, function_pb2.FunctionDef], function: str, ordinal: int, origins: Origins
) -> tuple[Mapping[str, function_pb2.FunctionDef], str]:
    """The functions with explicit seeds.

    Args:
        library: all functions by name.
        function: the one that is called.
        ordinal: the TensorFlow device whose seed counts.
        origins: names the new functions.

    Returns:
        All functions by name, and the name of the one to call; what was given where nothing is random.
    """
    seeder = _Seeder(library, ordinal, origins)
    if not seeder.is_random(function):
        return library, function
    name = seeder.seeded(function, is_called=True)
    return {**library, **seeder.functions}, name


class _Seeder:
    """Makes the seeded copies of functions."""

    def __init__(self, library: Mapping[str, function_pb2.FunctionDef], ordinal: int, origins: Origins) -> None:
        self._library = library
        self._ordinal = ordinal
        self._origins = origins
        self._random: dict[str, bool] = {}
        self.functions: dict[str, function_pb2.FunctionDef] = {}

    def is_random(self, name: str) -> bool:
        """Whether a function, or one it calls, draws random numbers."""
        if name not in self._random:
            self._random[name] = False  # for recursive functions
            self._random[name] = name in self._library and any(
                node.op in _STATELESS or any(self.is_random(called) for called in op_types.called_functions(node))
                for node in self._library[name].node_def
            )
        return self._random[name]

    def seeded(self, name: str, is_called: bool = False, is_body: bool = False) -> str:
        """Makes the copy of a function.

        Args:
            name: the function.
            is_called: whether it is the program itself, which takes its seed from the device.
            is_body: whether it is a loop's body, which hands on a new seed.
        """
        copied = self._origins.derive(name, "_seeded_body" if is_body else "_seeded")
        if copied in self.functions:
            return copied
        copy = self.functions[copied] = function_pb2.FunctionDef()
        copy.CopyFrom(self._library[name])
        copy.signature.name = copied
        del copy.node_def[:]
        if is_called:
            seed = self._device_seed(copy, self._explicit_seed(name))
        else:
            seed = _SEED_ARGUMENT
            copy.signature.input_arg.add(name=seed, type=types_pb2.DT_INT32)
        for node in self._library[name].node_def:
            self._add(copy, node, seed)
        if is_body:
            copy.signature.output_arg.add(name=_SEED_ARGUMENT, type=types_pb2.DT_INT32)
            copy.ret[_SEED_ARGUMENT] = _plus(copy, f"{_SEED_ARGUMENT}/next", seed, (1, 0))
        return copied

    def _add(self, copy: function_pb2.FunctionDef, node: node_def_pb2.NodeDef, seed: str) -> None:
        if node.op in _STATELESS:
            _add_stateless(copy, node, _plus(copy, f"{node.name}/ipu_seed", seed, (0, _salt(node.name))))
            return
        added = copy.node_def.add()
        added.CopyFrom(node)
        called = op_types.called_functions(node)
        if not any(self.is_random(name) for name in called):
            return
        is_loop = node.op in vocabulary.LOOPS
        for attribute in vocabulary.FUNCTION_ATTRIBUTES[node.op]:
            value = added.attr[attribute]
            for function in [value.func] if value.HasField("func") else value.list.func:
                function.name = self.seeded(function.name, is_body=is_loop and attribute == "body")
        controls = [text for text in added.input if text.startswith("^")]
        inputs = [text for text in added.input if not text.startswith("^")]
        del added.input[:]
        added.input.extend([*inputs, self._split(copy, node.name, seed), *controls])
        added.attr["T" if is_loop else "Tin"].list.type.append(types_pb2.DT_INT32)
        if is_loop and added.attr["output_shapes"].list.shape:
            added.attr["output_shapes"].list.shape.add().dim.add(size=2)

    def _device_seed(self, copy: function_pb2.FunctionDef, explicit: int) -> str:
        node = copy.node_def.add(name=_SEED_ARGUMENT, op=vocabulary.RANDOM_SEED)
        node.attr["ordinal"].i = self._ordinal
        node.attr["explicit_seed"].i = explicit
        return f"{node.name}:seed:0"

    def _explicit_seed(self, name: str) -> int:
        """A number that follows from the seeds a script gave its ops; 0 where it gave none."""
        seeds: list[int] = []
        for node in self._library[name].node_def:
            if node.op in _STATELESS:
                seeds.extend((node.attr["seed"].i, node.attr["seed2"].i))
            seeds.extend(self._explicit_seed(called) for called in op_types.called_functions(node) if called != name)
        return zlib.crc32(repr(seeds).encode()) | 1 if any(seeds) else 0

    @staticmethod
    def _split(copy: function_pb2.FunctionDef, name: str, seed: str) -> str:
        """A seed for a function's inside that does not overlap with those around it."""
        salted = _plus(copy, f"{name}/ipu_seed", seed, (0, _salt(name)))
        split = copy.node_def.add(name=f"{name}/ipu_split_seed", op="StatelessRandomUniformFullInt")
        split.input.extend([_constant(copy, f"{name}/ipu_split_seed/shape", np.array([2], np.int32)), salted])
        split.attr["dtype"].type = split.attr["T"].type = split.attr["Tseed"].type = types_pb2.DT_INT32
        return f"{split.name}:output:0"


def _add_stateless(copy: function_pb2.FunctionDef, node: node_def_pb2.NodeDef, seed: str) -> None:
    op, place, attributes = _STATELESS[node.op]
    inputs = list(node.input)
    inputs.insert(place, seed)
    added = copy.node_def.add(name=node.name, op=op, device=node.device, input=inputs)
    for name, value in node.attr.items():
        if name in attributes or name.startswith("_"):
            added.attr[attributes.get(name, name)].CopyFrom(value)
    added.attr["Tseed"].type = types_pb2.DT_INT32


def _plus(copy: function_pb2.FunctionDef, name: str, seed: str, numbers: tuple[int, int]) -> str:
    constant = _constant(copy, f"{name}/salt", np.array(numbers, np.int32))
    added = copy.node_def.add(name=name, op="AddV2", input=[seed, constant])
    added.attr["T"].type = types_pb2.DT_INT32
    return f"{name}:z:0"


def _constant(copy: function_pb2.FunctionDef, name: str, value: np.ndarray) -> str:
    node = copy.node_def.add(name=name, op="Const")
    node.attr["dtype"].type = types_pb2.DT_INT32
    node.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(value))
    return f"{name}:output:0"


def _salt(name: str) -> int:
    return int(np.uint32(zlib.crc32(name.encode())).astype(np.int32))
