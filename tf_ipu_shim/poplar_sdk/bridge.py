"""Calls the C++ library that builds users' Poplar ops (`csrc/bridge`), and passes its path to the plugin."""

from __future__ import annotations

import ctypes
import functools
import json
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from tf_ipu_shim import plugin
from tf_ipu_shim.cycle_model.sizes import UserOpStep
from tf_ipu_shim.poplar_sdk import toolchain
from tf_ipu_shim.poplar_sdk.op_calls import OpCall, describe_tensor

_LIBRARY = "lib/libtf_ipu_poplar.so"
_FLOAT = 1  # `DT_FLOAT`: metadata functions are told the number of inputs only
Runs = tuple[tuple[int, int], ...]
"""Runs of tiles from tile 0: the bytes on each tile, and the number of tiles."""


class Metadata(NamedTuple):
    """The properties that a library's metadata function declares.

    Args:
        aliases: pairs of an input and the output that has its memory.
        replica_identical_outputs: outputs that are equal on all replicas if the inputs are.
    """

    api_level: int
    allocating_indices: tuple[int, ...]
    aliases: tuple[tuple[int, int], ...]
    is_elementwise: bool
    is_stateless: bool
    is_hashable: bool
    replica_identical_outputs: tuple[int, ...] = ()


class OpInput(NamedTuple):
    """An input: whether the library's allocator maps it, and how."""

    is_allocated: bool
    tiles: Runs


class OpOutput(NamedTuple):
    """An output: the input that it has the memory of (-1 for none), and its tiles."""

    alias: int
    tiles: Runs


class OpDescription(NamedTuple):
    """An op as its library has built it.

    Args:
        temporary: bytes on each tile of the variables, constants and vertices that it adds to its inputs and outputs.
    """

    inputs: tuple[OpInput, ...]
    outputs: tuple[OpOutput, ...]
    temporary: Runs
    steps: tuple[UserOpStep, ...]


class Bridge:
    """The loaded library.

    Args:
        path: the path of `libtf_ipu_poplar.so`.
    """

    def __init__(self, path: str) -> None:
        self._c = ctypes.CDLL(path)
        text = ctypes.POINTER(ctypes.c_void_p)
        self._c.tf_ipu_poplar_metadata.argtypes = [ctypes.c_char_p, ctypes.c_size_t, text, text]
        self._c.tf_ipu_poplar_build.argtypes = [ctypes.c_char_p, ctypes.c_size_t, text, text]
        self._c.tf_ipu_poplar_locate.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, text]
        self._c.tf_ipu_poplar_describe.argtypes = [ctypes.c_void_p, text, text]
        self._c.tf_ipu_poplar_release.argtypes = [ctypes.c_void_p]
        self._c.tf_ipu_poplar_release.restype = None
        self._c.tf_ipu_poplar_count.restype = ctypes.c_size_t
        self._c.tf_ipu_poplar_free.argtypes = [ctypes.c_void_p]
        self._c.tf_ipu_poplar_free.restype = None

    def metadata(self, call: bytes) -> Metadata:
        """Loads an op's library and returns its declarations; raises TensorFlow's error if it cannot be used."""
        fields = json.loads(self._ask(self._c.tf_ipu_poplar_metadata, call, len(call)))
        for name in ("allocating_indices", "replica_identical_outputs"):
            fields[name] = tuple(fields[name])
        fields["aliases"] = tuple(map(tuple, fields["aliases"]))
        return Metadata(**fields)

    def build(self, call: bytes) -> OpDescription:
        """Builds an op if it is not built yet; raises TensorFlow's error if that fails. The plugin forgets it."""
        op, error = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._c.tf_ipu_poplar_build(call, len(call), op, error), error)
        try:
            fields = json.loads(self._ask(self._c.tf_ipu_poplar_describe, op))
        finally:
            self._c.tf_ipu_poplar_release(op)
        return OpDescription(
            tuple(OpInput(bool(allocated), _runs(tiles)) for allocated, tiles in fields["inputs"]),
            tuple(OpOutput(alias, _runs(tiles)) for alias, tiles in fields["outputs"]),
            _runs(fields["temporary"]),
            tuple(UserOpStep(*step) for step in fields["steps"]),
        )

    def locate(self, call: bytes, op: str) -> None:
        """Tells a built op its name and line in the script, for messages of its runs."""
        error = ctypes.c_void_p()
        self._check(self._c.tf_ipu_poplar_locate(call, len(call), op.encode(), error), error)

    def count(self) -> int:
        """Returns how many built ops are kept."""
        return int(self._c.tf_ipu_poplar_count())

    def _ask(self, function: Any, *arguments: Any) -> str:
        answer, error = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(function(*arguments, answer, error), error)
        return self._text(answer)

    def _check(self, code: int, error: ctypes.c_void_p) -> None:
        if code:
            from tensorflow.compat.v1 import errors as tf_errors

            message = self._text(error)
            raise tf_errors.exception_type_from_error_code(code)(None, None, message)

    def _text(self, text: ctypes.c_void_p) -> str:
        value = ctypes.string_at(text.value or 0).decode(errors="replace") if text.value else ""
        self._c.tf_ipu_poplar_free(text)
        return value


def _runs(pairs: Sequence[Sequence[int]]) -> Runs:
    return tuple((size, tiles) for size, tiles in pairs)


_lock = threading.Lock()
_bridge: Bridge | None = None


def load() -> Bridge:
    """Returns the bridge, whose libraries are built at the first call, and passes its path to the plugin."""
    global _bridge
    with _lock:
        if _bridge is None:
            path = str(toolchain.build_libraries() / _LIBRARY)
            bridge = Bridge(path)
            plugin.load().set_poplar_bridge(path)
            _bridge = bridge
        return _bridge


def metadata(path: str, digest: str, op_name: str, inputs: int, outputs: int, gradient_size: int) -> Metadata:
    """Loads an op's library and returns its declarations; raises TensorFlow's error if it cannot be used."""
    scalar = describe_tensor(_FLOAT, ())
    call = OpCall(path, digest, "", op_name, "", gradient_size, 0, False, "", "", [scalar] * inputs, [scalar] * outputs)
    return load().metadata(call.encode())


@functools.lru_cache(maxsize=1024)
def describe(call: bytes) -> OpDescription:
    """Returns an op as its library builds it."""
    return load().build(call)
