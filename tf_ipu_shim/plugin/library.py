"""Wraps the C++ plugin for Python: its ops, devices, counters and the lowering callback."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim import errors
from tf_ipu_shim.machine.ids import Chip, Device
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin import live_context, op_functions

MAXIMUM_DEVICES = 64
MAXIMUM_CHIPS = 256
APPLICATION_DEVICES = range(64, 128)
"""Ordinals of the devices of embedded applications; scripts configure those before them."""
APPLICATION_SESSION = "tf_ipu_shim.application"
"""Name in the metadata of a session with only such a device, whose ordinal is the version there."""

_LOWER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)
_INT32, _INT64, _CHARS, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p
_INT64_RESULT = ctypes.POINTER(_INT64)
# The result and arguments of the plugin's C functions; ctypes' own where left out.
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    **dict.fromkeys(
        ("ipu_host_to_device_bytes", "ipu_host_to_device_transfers", "ipu_device_to_host_bytes",
         "ipu_device_to_host_transfers", "ipu_programs_lowered", "ipu_programs_compiled", "ipu_programs_run"),
        (_INT64, [_INT32]),
    ),
    **dict.fromkeys(("ipu_live_bytes", "ipu_peak_bytes"), (_INT64, [_INT32] * 2)),
    **dict.fromkeys(("ipu_exchange_bytes", "ipu_exchange_transfers"), (_INT64, [_INT32] * 3)),
    "ipu_set_seed": (_INT32, [_INT32, _INT64, _INT32]),
    "ipu_fail_application": (_INT32, [_CHARS, _INT32, _CHARS, _INT32]),
    **dict.fromkeys(("ipu_answer", "ipu_python_answer"), (_INT32, [_POINTER, _CHARS, _INT64])),
    "ipu_constant_arguments": (
        _CHARS, [_POINTER, _CHARS, _INT64, _CHARS, ctypes.POINTER(ctypes.c_uint8), _INT32]
    ),
    "ipu_compiler_ir": (
        _POINTER,
        [_POINTER, _CHARS, _INT64, _CHARS, _INT64_RESULT, _INT64, _INT64_RESULT, ctypes.POINTER(_INT32)],
    ),
    "ipu_set_poplar_bridge": (None, [_CHARS]),
    "ipu_watch_interrupts": (_INT32, [_POINTER]),
    "ipu_set_plain_op_events": (_CHARS, [_INT32, _CHARS, _INT64]),
    **dict.fromkeys(
        ("ipu_uncompilable", "ipu_without_kernel", "ipu_by_one_dnn"), (_POINTER, [_CHARS, _INT64, _INT64_RESULT])
    ),
}  # fmt: skip
_OK, _INVALID_ARGUMENT, _FAILED_PRECONDITION, _UNIMPLEMENTED, _INTERNAL = 0, 3, 9, 12, 13  # TensorFlow's status codes
_KEYBOARD_INTERRUPT = -1  # `kKeyboardInterrupt`


@dataclasses.dataclass(frozen=True)
class Transfers:
    """Bytes and transfers in one direction.

    Args:
        bytes: their sum.
        transfers: the number of tensors that were transferred.
    """

    bytes: int
    transfers: int


class Library:
    """The loaded plugin.

    Args:
        path: the shared library, built for the TensorFlow of this process.

    Attributes:
        ops: TensorFlow's Python wrappers of the plugin's ops (`ipu_program`, `ipu_inter_copy`, ...).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        self.ops: Any = op_functions.load_op_functions(str(path))
        self._c = ctypes.CDLL(str(path))
        self._declare()
        self._c.ipu_register()
        self._lower: Any = None  # ctypes keeps no reference to its callbacks
        self._handle: Any = None
        live_context.install(self._c)
        self.list_devices(None)
        live_context.add_devices(self._c)

    def _declare(self) -> None:
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._c, name)
            function.restype, function.argtypes = result, arguments

    def set_devices(self, chips: Sequence[int], float_checks: Sequence[int] = ()) -> None:
        """Says which TensorFlow devices there are. New sessions and a live eager context get them at once.

        All of them round float16 to the nearest, and clip it, until `set_rounding` and `keep_infinities` change that.
        """
        if not 1 <= len(chips) <= MAXIMUM_DEVICES or not all(1 <= count <= MAXIMUM_CHIPS for count in chips):
            raise ValueError(
                f"{list(chips)} IPUs were asked for. There can be 1 to {MAXIMUM_DEVICES} TensorFlow devices "
                f"with 1 to {MAXIMUM_CHIPS} IPUs each. Choose numbers in these ranges."
            )
        self._c.ipu_set_device_count(len(chips))
        for ordinal in range(MAXIMUM_DEVICES):
            checks = float_checks[ordinal] if ordinal < len(float_checks) else 0
            self._c.ipu_set_float_checks(ordinal, int(checks))
            self._c.ipu_set_rounding(ordinal, 0)
            self._c.ipu_keep_infinities(ordinal, 0)
        live_context.add_devices(self._c)

    def list_devices(self, count: int | None) -> None:
        """Says how many IPU devices `tf.config` lists."""
        live_context.list_configured_devices(self._c, count)

    def set_float_checks(self, ordinal: Device, checks: int) -> None:
        """Sets the floating-point exceptions of one device, as bits of `runtime.float_checks.FloatCheck`."""
        _check(ordinal)
        self._c.ipu_set_float_checks(ordinal, int(checks))

    def set_rounding(self, ordinal: Device, rounding: int) -> None:
        """Says how one device rounds float16, as bits of `runtime.stochastic_rounding.Rounding`."""
        _check(ordinal)
        self._c.ipu_set_rounding(ordinal, int(rounding))

    def keep_infinities(self, ordinal: Device, keep: bool) -> None:
        """Says whether float16 results of one device that overflow are infinite, as on an IPU model."""
        _check(ordinal)
        self._c.ipu_keep_infinities(ordinal, int(keep))

    def set_plain_op_events(self, ordinal: Device, events: bytes) -> None:
        """Says which trace events the plain ops of a session's step make on a device, until the next epoch."""
        _check(ordinal)
        problem = self._c.ipu_set_plain_op_events(ordinal, events, len(events))
        if problem:
            raise ValueError(problem.decode())

    def profile_plain_ops(self, ordinal: Device) -> None:
        """Profiles the uncompiled ops of session steps on a device until the next epoch."""
        _check(ordinal)
        self._c.ipu_profile_plain_ops(ordinal)

    def fail_application(self, engine: str, code: int, message: str, closes: bool) -> None:
        """Tells anyone who waits for an embedded application that its run has failed."""
        self._c.ipu_fail_application(engine.encode(), code, message.encode(), int(closes))

    def new_epoch(self) -> None:
        """Begins a new configuration. Programs are lowered again at their next run, devices attach at their next use,
        and trace events not yet fetched are dropped.
        """
        self._c.ipu_new_epoch()

    def set_lowering(self, lower: Callable[[Call, bytes], bytes]) -> None:
        """Installs the function that lowers a traced call (see `driver.entry`)."""

        def lower_call(call: int, request: int, size: int) -> bytes:
            live_context.set_eager_context(self._c, call)
            return lower(Call(self._c, call), ctypes.string_at(request, size))

        def entry(call: int, request: int, size: int) -> int:
            return _answer(lambda: lower_call(call, request, size), call, self._c.ipu_answer)

        self._lower = _LOWER(entry)
        self._c.ipu_set_lower_function(self._lower)

    def set_handlers(self, handlers: Mapping[str, Callable[[bytes], bytes]]) -> None:
        """Installs the handlers of the plugin ops' requests to Python (see `runtime.op_requests`)."""

        def entry(call: int, name: bytes, request: int, size: int) -> int:
            return _answer(
                lambda: handlers[name.decode()](ctypes.string_at(request, size)), call, self._c.ipu_python_answer
            )

        self._handle = _CALL(entry)
        self._c.ipu_set_python_function(self._handle)

    def set_poplar_bridge(self, path: str) -> None:
        """Sets the path of the library that builds users' Poplar ops."""
        self._c.ipu_set_poplar_bridge(path.encode())

    def uncompilable(self, graph: bytes) -> list[str]:
        """Returns names of the nodes in a serialised `GraphDef` that XLA has no kernel for."""
        return self._names(self._c.ipu_uncompilable, graph)

    def without_kernel(self, graph: bytes) -> list[str]:
        """Names of the nodes in a serialised `GraphDef` that cannot run one by one on an IPU: TensorFlow's CPU device
        has no kernel for them."""
        return self._names(self._c.ipu_without_kernel, graph)

    def by_one_dnn(self, graph: bytes) -> list[str]:
        """Returns names of the nodes in a serialised `GraphDef` that run one by one by oneDNN's kernels."""
        return self._names(self._c.ipu_by_one_dnn, graph)

    @staticmethod
    def _names(function: Any, graph: bytes) -> list[str]:
        size = ctypes.c_int64()
        result = function(graph, len(graph), size)
        return list(program_pb2.NodeNames.FromString(ctypes.string_at(result, size.value)).names)

    def compiler_ir(
        self, context_handle: object, library: bytes, function: str, arguments: Sequence[int]
    ) -> tuple[bytes | None, str]:
        """HLO of a function, made without Python's lock."""
        handles = (ctypes.c_int64 * len(arguments))(*arguments)
        size, fails = ctypes.c_int64(), ctypes.c_int32()
        result = self._c.ipu_compiler_ir(
            live_context.pointer_of(context_handle),
            library,
            len(library),
            function.encode(),
            handles,
            len(arguments),
            size,
            fails,
        )
        ir = ctypes.string_at(result, size.value)
        return (None, ir.decode(errors="replace")) if fails.value else (ir, "")

    def watch_interrupts(self) -> None:
        """Makes Ctrl-C end programs until Python's signal handler is set again. Python's main thread only."""
        self._c.ipu_watch_interrupts(ctypes.cast(ctypes.pythonapi.PyErr_SetInterrupt, ctypes.c_void_p))

    def interrupt_answered(self) -> None:
        """Says that Python raises KeyboardInterrupt now: programs may run again."""
        self._c.ipu_interrupt_answered()

    def interrupted(self) -> bool:
        """Returns whether programs have to end because of a Ctrl-C that Python has not handled yet."""
        return bool(self._c.ipu_interrupted())

    def compilations_left_behind(self) -> int:
        """Returns the number of XLA compilations whose steps Ctrl-C has ended."""
        return int(self._c.ipu_compilations_left_behind())

    def leave_deletions(self) -> int:
        """Says that the process ends; returns the number of iterators that are still being deleted."""
        return int(self._c.ipu_leave_deletions())

    def delete_outfeed(self, feed_id: str) -> None:
        """Deletes an outfeed with its elements."""
        self._c.ipu_delete_outfeed(feed_id.encode())

    def set_seed(self, ordinal: Device, seed: int, identical_replicas: bool = False) -> None:
        """Sets the seed of a device's random numbers: the next run of a random program is the first of its sequence."""
        _check(ordinal)
        self._c.ipu_set_seed(ordinal, seed & 0x7FFF_FFFF_FFFF_FFFF, identical_replicas)

    def live_bytes(self, ordinal: Device, chip: Chip) -> int:
        """Bytes that tensors hold now in the memory of one IPU of `/device:IPU:<ordinal>`."""
        _check(ordinal, chip)
        return self._c.ipu_live_bytes(ordinal, chip)

    def peak_bytes(self, ordinal: Device, chip: Chip) -> int:
        """Returns the most bytes that were held at once since the counters were reset."""
        _check(ordinal, chip)
        return self._c.ipu_peak_bytes(ordinal, chip)

    def host_to_device(self, ordinal: Device) -> Transfers:
        """Transfers from the host to the device."""
        _check(ordinal)
        return Transfers(self._c.ipu_host_to_device_bytes(ordinal), self._c.ipu_host_to_device_transfers(ordinal))

    def device_to_host(self, ordinal: Device) -> Transfers:
        """Transfers from the device to the host."""
        _check(ordinal)
        return Transfers(self._c.ipu_device_to_host_bytes(ordinal), self._c.ipu_device_to_host_transfers(ordinal))

    def exchange(self, ordinal: Device, source: Chip, destination: Chip) -> Transfers:
        """Transfers from one IPU of the device to another."""
        _check(ordinal, source, destination)
        return Transfers(
            self._c.ipu_exchange_bytes(ordinal, source, destination),
            self._c.ipu_exchange_transfers(ordinal, source, destination),
        )

    def programs_lowered(self, ordinal: Device) -> int:
        """Returns the number of programs lowered for the device since the counters were reset."""
        _check(ordinal)
        return self._c.ipu_programs_lowered(ordinal)

    def programs_compiled(self, ordinal: Device) -> int:
        """Returns the number of compiled programs, without programs that only return constants or arguments."""
        _check(ordinal)
        return self._c.ipu_programs_compiled(ordinal)

    def programs_run(self, ordinal: Device) -> int:
        """Returns the number of program runs on the device since the counters were reset."""
        _check(ordinal)
        return self._c.ipu_programs_run(ordinal)

    def reset_counters(self, ordinal: Device) -> None:
        """Sets the device's counters to zero and its peaks to the live bytes."""
        _check(ordinal)
        self._c.ipu_reset_counters(ordinal)


def _check(ordinal: Device, *chips: int) -> None:
    if not 0 <= ordinal < APPLICATION_DEVICES.stop:
        raise ValueError(
            f"There is no /device:IPU:{ordinal}; expected 0 to {APPLICATION_DEVICES.stop - 1}. Choose "
            "one of these devices."
        )
    for chip in chips:
        if not 0 <= chip < MAXIMUM_CHIPS:
            raise ValueError(
                f"/device:IPU:{ordinal} has no IPU {chip}; expected 0 to {MAXIMUM_CHIPS - 1}. Choose one of these IPUs."
            )


def _answer(compute: Callable[[], bytes], call: int, send: Callable[[int, bytes, int], Any]) -> int:
    """Sends the result of `compute`, or its error, as the answer to a call from C++; returns the status code."""
    try:
        answer = compute()
        send(call, answer, len(answer))
        return _OK
    except BaseException as error:  # nothing may cross into C++
        message, code = _error_status(error)
        send(call, message, len(message))
        return code


def _error_status(error: BaseException) -> tuple[bytes, int]:
    code = getattr(error, "error_code", None)
    if code is not None:
        return error.message.encode(), int(code)  # type: ignore[attr-defined]
    if isinstance(error, KeyboardInterrupt):
        return b"", _KEYBOARD_INTERRUPT
    if isinstance(error, (NotImplementedError, ValueError)):
        return str(error).encode(), _UNIMPLEMENTED if isinstance(error, NotImplementedError) else _INVALID_ARGUMENT
    if isinstance(error, errors.ShimError):  # what is wrong is not in here
        return str(error).encode(), _FAILED_PRECONDITION
    where = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return f"{type(error).__name__}: {error}\n{where}".encode(), _INTERNAL


class Frame(NamedTuple):
    """A frame of a Python stack."""

    file: str
    line: int
    function: str


class Call:
    """One call of the lowering: lets it question the TensorFlow runtime that waits for the answer."""

    def __init__(self, c_library: ctypes.CDLL, pointer: int) -> None:
        self._c = c_library
        self._pointer = pointer

    def stack_of(self, function: str, node: str) -> list[Frame]:
        """Returns the Python frames in which an op of a function was made, outermost first.

        Empty if TensorFlow keeps none, as for a graph that was read from a file.
        """
        # PyDLL keeps the GIL: the frames are Python objects.
        ipu_stack_of = ctypes.PyDLL(self._c._name).ipu_stack_of
        ipu_stack_of.restype = ctypes.c_void_p
        ipu_stack_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64)]
        size = ctypes.c_int64()
        answer = ipu_stack_of(self._pointer, function.encode(), node.encode(), size)
        stack = program_pb2.Stack.FromString(ctypes.string_at(answer, size.value))
        return [Frame(os.fsdecode(frame.file), frame.line, os.fsdecode(frame.function)) for frame in stack.frames]

    def constant_arguments(self, library: bytes, function: str, arguments: int) -> list[bool]:
        """Returns which arguments of a function XLA must know at compile time, such as a shape or an axis."""
        flags = (ctypes.c_uint8 * arguments)()
        problem = self._c.ipu_constant_arguments(
            self._pointer, library, len(library), function.encode(), flags, arguments
        )
        if problem is not None:
            raise RuntimeError(problem.decode())
        return [bool(flag) for flag in flags]


def open_library(ensure_built: Callable[..., pathlib.Path]) -> Library:
    """Loads the library of the build cache, building it again once if the cached one does not load."""
    from tensorflow.compat.v2 import errors as errors_impl

    try:
        return Library(ensure_built())
    except (OSError, errors_impl.NotFoundError):
        pass  # such as a file cut short, or built against other shared libraries
    try:
        return Library(ensure_built(rebuild=True))
    except (OSError, errors_impl.NotFoundError) as error:
        raise errors.PluginError(
            f"TensorFlow does not load the freshly built IPU plugin: {error}. Check that one TensorFlow only is "
            "installed in this environment, and remove the plugin's cache directory."
        ) from error
