"""Ends a running program on Ctrl-C and raises `KeyboardInterrupt` in the waiting script.

Python's own handler only notes the signal: the main thread, which raises the exception, waits in TensorFlow. So the
plugin records it first (`csrc/process/interrupts`). Programs end with an error at their next op, loop iteration, chunk,
stage or launch, while XLA may go on compiling. Then Python's thread is free again, and its handler, notified here,
raises KeyboardInterrupt.

Python drops errors raised in `__del__` and in callbacks of weak references. A Ctrl-C while one runs, such as when
TensorFlow deletes a function, is therefore sent again a little later. So is a Ctrl-C while pybind11 constructs a
TensorFlow error: it would report both exceptions as a RuntimeError. If a function or session then raises the error,
KeyboardInterrupt replaces it there.

TensorFlow's scopes keep the current device, strategy and graph in several variables. A Ctrl-C while a scope is entered
or left would leave some of them changed. Later code in the same process (a notebook's next cell) would fail. While an
op is created, C++ has it before Python. A Ctrl-C between them becomes a SystemError in code that visits all ops. So the
signal is sent again until such a step is done, for at most a second.

A script with its own handler is not changed. A notebook's kernel restores Python's handler for each cell, with a
`signal.signal` that it kept from before. So each call of TensorFlow checks for that.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tf_ipu_shim import patches
from tf_ipu_shim.runtime import pending_compilations

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library

_STOCK, _set_handler = signal.default_int_handler, signal.signal
# What `signal.getsignal` asks: that function makes an enumeration's value first, which takes longer than an eager op.
_handler_of: Callable[[int], Any] = getattr(signal.getsignal, "__wrapped__", signal.getsignal)
_LATER = 0.01  # seconds
_STEP_LIMIT = 1.0  # seconds: a scope of the script may wait for something when it ends
_again: threading.Timer | None = None
_postponed_at: float | None = None
# Where the classes of TensorFlow's errors are, once they are loaded.
_error_files: frozenset[str] = frozenset()
# Where the scopes of TensorFlow, Keras and this package are; most are generators that contextlib enters and leaves.
_step_directories: tuple[str, ...] = ()
# Functions there that must not end halfway: of scopes, and the creation of an op.
_STEPS = frozenset({"__enter__", "__exit__", "from_node_def"})
_CALLBACK = "entry"  # of the plugin, in `_callback_file`
_callback_file = ""
_library: Library | None = None


def install(library: Library) -> None:
    """Makes Ctrl-C end programs; main thread only."""
    global _library
    _library = library
    if threading.current_thread() is not threading.main_thread() or not _is_default(_handler_of(signal.SIGINT)):
        return
    from tf_ipu_shim.tf_private.eager import core, execute
    from tf_ipu_shim.tf_private.sessions import session
    from tf_ipu_shim.tf_private.tensors import errors_impl

    global _error_files, _step_directories, _callback_file
    _callback_file = inspect.getfile(type(library))
    _error_files = frozenset({str(core.__file__), str(errors_impl.__file__)})
    _step_directories = (contextlib.__file__, *_package_directories(str(core.__file__)))

    # Code that asks whether SIGINT has its default handler, as asyncio does, gets yes.
    patches.replace(signal, "default_int_handler", lambda _: _raise, why="Ctrl-C ends running programs")
    why = "Ctrl-C ends programs again after a script has restored the default handler"
    patches.replace(signal, "signal", _watching_signals, why=why)
    why = "Ctrl-C raises KeyboardInterrupt where TensorFlow would report an error of the program"
    patches.replace(session.BaseSession, "_do_call", lambda stock: _keeping_session(_raising_interrupt(stock)), why=why)
    patches.replace(execute, "execute", _raising_interrupt, why=why)
    pending_compilations.install(library)
    patches.change("SIGINT", _begin, _end, why="Ctrl-C ends programs", undone="Python's own handler is restored")


def check() -> None:
    """Raises KeyboardInterrupt during lowering, also in other threads."""
    if _library is not None and _library.interrupted():
        raise KeyboardInterrupt


def _begin() -> None:
    signal.signal(signal.SIGINT, _raise)


def _end() -> None:
    if threading.current_thread() is threading.main_thread() and _handler_of(signal.SIGINT) is _raise:
        _set_handler(signal.SIGINT, _STOCK)


def _raise(signal_number: int, frame: Any) -> None:
    if _library is not None:
        _library.interrupt_answered()  # also for the one below: until it comes again, programs run
    global _again, _postponed_at
    _again = None
    if _is_dropped_in(frame) or (_is_in_undivided_step(frame) and not _is_overdue()):
        _postponed_at = _postponed_at or time.monotonic()
        _again = threading.Timer(_LATER, signal.pthread_kill, [threading.main_thread().ident, signal_number])
        _again.daemon = True
        _again.start()
        return
    _postponed_at = None
    _STOCK(signal_number, frame)


def _package_directories(tensorflow_file: str) -> list[str]:
    """Returns the directories of TensorFlow, its Keras and this package."""
    installed = tensorflow_file.rpartition(f"{os.sep}tensorflow{os.sep}")[0]
    own_package = os.path.dirname(os.path.dirname(__file__))
    return [
        *(os.path.join(installed, name, "") for name in ("tensorflow", "keras", "tf_keras")),
        os.path.join(own_package, ""),
    ]


def _forget_postponed() -> None:
    global _again, _postponed_at
    if _again is not None:
        _again.cancel()
    _again = _postponed_at = None


def _is_overdue() -> bool:
    return _postponed_at is not None and time.monotonic() - _postponed_at > _STEP_LIMIT


def _is_dropped_in(frame: Any) -> bool:
    """Returns whether Python, ctypes or pybind11 would drop an exception raised in a frame."""
    # The plugin's callbacks handle the errors of what they call, not their own.
    if frame is not None and (frame.f_code.co_name, frame.f_code.co_filename) == (_CALLBACK, _callback_file):
        return True
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename == weakref.__file__:
            return True
        if code.co_name == "__init__" and code.co_filename in _error_files:
            return True
        frame = frame.f_back
    return False


def _is_in_undivided_step(frame: Any) -> bool:
    """Returns whether one of TensorFlow's scopes is being entered or left, or an op created."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _STEPS and code.co_filename.startswith(_step_directories):
            return True
        frame = frame.f_back
    return False


def _is_default(handler: Any) -> bool:
    return handler is _STOCK or handler is _raise


def _watching_signals(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def set_handler(signalnum: int, handler: Any) -> Any:
        is_ours = signalnum == signal.SIGINT and _is_default(handler)
        before = stock(signalnum, _raise if is_ours else handler)
        if is_ours and _library is not None:
            _library.watch_interrupts()
        return before

    return set_handler


def _raising_interrupt(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Raises KeyboardInterrupt instead of a TensorFlow error that Ctrl-C interrupted."""

    @functools.wraps(stock)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _handler_of(signal.SIGINT) is _STOCK and threading.current_thread() is threading.main_thread():
            _begin()
        try:
            return stock(*args, **kwargs)
        except Exception:
            if _again is None or threading.current_thread() is not threading.main_thread():
                raise
            _forget_postponed()
            raise KeyboardInterrupt from None

    return call


def _keeping_session(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps a session alive while XLA compiles a program of it (see `pending_compilations`)."""

    @functools.wraps(stock)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return stock(self, *args, **kwargs)
        except KeyboardInterrupt:
            if _library is not None:
                pending_compilations.keep(_library, self)
            raise

    return call
