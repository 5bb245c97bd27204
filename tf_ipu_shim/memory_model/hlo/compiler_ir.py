"""Converts a function to unoptimised HLO without running it, like `experimental_get_compiler_ir`.

It needs an eager context, with the function in it. This module keeps a separate context, so that a graph-mode script's
global context stays unchanged. The plugin asks (`csrc/launches/compiler_ir`), without Python's lock. It passes
placeholder variables of the right type and shape, whose memory is never touched. Uses `context.Context`, its
`_context_handle`, and `hlo_pb2`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tf_ipu_shim import plugin
from tf_ipu_shim.runtime import interrupts
from tf_ipu_shim.tf_private import eager as tf_eager
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.protos import config_pb2, function_pb2, hlo_pb2, types_pb2

_HANDLES = frozenset({types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT})
# `GetCompilerIr` makes a graph of the function, which its context keeps: tens of kilobytes each. A new context takes
# milliseconds. Checked on TensorFlow 2.15.1 and 2.21.0.
_QUERIES_PER_CONTEXT = 100
# Bytes of a function library whose form takes so long, some tenths of a second, that other work may run meanwhile.
_LARGE = 200_000


class Argument(NamedTuple):
    """An argument of a function.

    Args:
        type: its `DataType`, for a variable its value's; 0 for a variable that has no value yet.
        variable: whether it is a variable's handle.
    """

    type: int
    shape: tuple[int, ...]
    variable: bool = False


class ConversionError(Exception):
    """XLA cannot convert a function; has the reason and XLA's full message."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(reason)
        self.text = text


def _new_context() -> context.Context:
    """Returns an eager context with two threads for a device that computes nothing."""
    config = config_pb2.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    return context.Context(config=config)


class CompilerIr:
    """Requests HLO from XLA. Thread-safe; one per process is enough (`shared()`)."""

    def __init__(self) -> None:
        self._library = plugin.load()
        self._context = _new_context()
        self._asked = 0
        self._lock = threading.Lock()

    def hlo(
        self, function: str, library: Iterable[function_pb2.FunctionDef], arguments: Sequence[Argument]
    ) -> hlo_pb2.HloModuleProto:
        """Returns a function's HLO before optimisation."""
        interrupts.check()
        if any(argument.type in _HANDLES for argument in arguments if not argument.variable):
            # TensorFlow would look for a variable behind it, where there is none, and end the process.
            raise ConversionError("it takes a handle of a resource that is not known before it runs")
        functions = function_pb2.FunctionDefLibrary(function=library).SerializeToString()
        begin = getattr(_state, "begin", None)
        if begin is not None and len(functions) >= _LARGE:
            begin()
        handles = itertools.chain.from_iterable(map(_encode_argument, arguments))
        with self._lock:
            if self._asked == _QUERIES_PER_CONTEXT:
                self._context, self._asked = _new_context(), 0
            self._asked += 1
            self._context.ensure_initialized()
            serialized, reason = self._library.compiler_ir(
                tf_eager.context_handle(self._context), functions, function, list(handles)
            )
        if serialized is None:
            raise ConversionError(reason.strip().split("\n")[0], reason)
        return hlo_pb2.HloModuleProto.FromString(serialized)


def _encode_argument(argument: Argument) -> tuple[int, ...]:
    """Encodes an argument as the plugin reads it."""
    return argument.type, int(argument.variable), len(argument.shape), *argument.shape


@contextlib.contextmanager
def with_background_work(begin: Callable[[], None]) -> Iterator[None]:
    """Starts background work when this thread requests the HLO of a large function, without the GIL."""
    _state.begin = begin
    try:
        yield
    finally:
        del _state.begin


_state = threading.local()
_shared_lock = threading.Lock()
_shared: CompilerIr | None = None


def shared() -> CompilerIr:
    """Returns the process's instance, created on demand."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = CompilerIr()
        return _shared
