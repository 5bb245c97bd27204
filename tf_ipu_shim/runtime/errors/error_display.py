"""Displays an uncaught error once, last and short.

TensorFlow adds its own frames to a program's error, lists the origin of each op, and in a session's graph repeats the
message. A process that uses `ipu` shows the script's own lines, then the error: what, where, what to do.
`TF_IPU_SHIM_TRACEBACK=full` leaves everything as Python and TensorFlow print it; so do debuggers, notebooks and test
runners, which show errors themselves. The exception that an `except` clause sees is never changed.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
import types
from collections.abc import Iterator

from tf_ipu_shim import patches
from tf_ipu_shim.runtime.errors import error_hints, error_texts, script_files

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_TRACEBACK"
FULL = "full"
_HEADER = f"Traceback (most recent call last; {ENVIRONMENT_VARIABLE}={FULL} shows all frames):"

# What Python writes between an error and the one that it led to.
_RELATIONS = {
    "cause": "\nThe above exception was the direct cause of the following exception:\n\n",
    "context": "\nDuring handling of the above exception, another exception occurred:\n\n",
}


def install() -> None:
    """Installs the display for this process and its threads, unless another excepthook is set."""
    _install_for_threads()
    if sys.excepthook is not sys.__excepthook__:
        return
    stock = sys.excepthook
    patches.change(
        "sys.excepthook",
        lambda: setattr(sys, "excepthook", _show),
        lambda: setattr(sys, "excepthook", stock),
        why="an uncaught error is shown with the script's own lines and without TensorFlow's repetitions",
        undone="Python's own function is restored",
    )


def _install_for_threads() -> None:
    stock = threading.__excepthook__
    if threading.excepthook is not stock:
        return
    patches.change(
        "threading.excepthook",
        lambda: setattr(threading, "excepthook", _show_of_thread),
        lambda: setattr(threading, "excepthook", stock),
        why="an uncaught error of a thread is shown as one of the script is, under the thread's name",
        undone="Python's own function is restored",
    )


def display_text(error: BaseException, trace: types.TracebackType | None = None) -> str | None:
    """Returns the text by which an error is displayed, or None to leave it to Python."""
    links = list(_links(error, trace or error.__traceback__))
    if not any(link.changed for link in links):
        return None
    text = ""
    for link in links:
        if text and not link.frames:
            continue  # TensorFlow raised it again
        header = _HEADER if not text else "Traceback (most recent call last):"
        between = _RELATIONS[link.relation] if text else ""
        text = "".join([f"{header}\n", *link.frames, *link.message, between, text])
    return text


class _Link:
    """One error of a chain: displayed frames and message, and whether anything is hidden."""

    def __init__(self, error: BaseException, trace: types.TracebackType | None, relation: str) -> None:
        formatted = traceback.TracebackException(type(error), error, trace, compact=True)
        summary = traceback.StackSummary.from_list(list(_script_frames(formatted.stack)))
        message = list(formatted.format_exception_only())
        self.relation = relation
        self.frames = summary.format() if summary or relation else formatted.stack.format()
        self.message = message
        self.changed = len(summary) < len(formatted.stack)
        error_message = _text(error)
        if error_message is None or isinstance(error, SyntaxError):
            return
        frames, plain_message = error_texts.split_frames(error_texts.clean(error_message))
        hint = error_hints.hint(error, error_message)
        if frames or hint or plain_message != error_message:
            self.frames = [*self.frames, *frames]
            self.message = [_named(error, plain_message + hint)]
            self.changed = True


def _links(error: BaseException, trace: types.TracebackType | None) -> Iterator[_Link]:
    seen: set[int] = set()
    relation = ""
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield _Link(current, trace, relation)
        cause = current.__cause__
        following = cause or (None if current.__suppress_context__ else current.__context__)
        relation = "cause" if cause is not None else "context"
        current, trace = following, getattr(following, "__traceback__", None)


def _script_frames(stack: traceback.StackSummary) -> Iterator[traceback.FrameSummary]:
    """Yields the script's frames, without TensorFlow's, this package's and Python's library's.

    Frames of NumPy and h5py are left out too, if TensorFlow or this package is in the traceback.
    """
    frames = list(stack)
    runners = [index for index, frame in enumerate(frames) if frame.filename.startswith(script_files.RUNNER)]
    frames = frames[runners[-1] if runners else 0 :]  # above is the command that has run the script
    hides_called = any(frame.filename.startswith(script_files.HIDDEN) for frame in frames)
    below = False
    of_library: list[traceback.FrameSummary] = []
    for frame in frames:
        if _is_hidden(frame):
            below = True
            of_library.clear()
        elif hides_called and script_files.is_of_called_package(frame.filename):
            continue
        elif script_files.is_of_python(frame.filename):
            if not below:
                of_library.append(frame)
        else:
            below = False
            yield from of_library
            of_library.clear()
            yield frame
    yield from of_library


def _is_hidden(frame: traceback.FrameSummary) -> bool:
    """Returns whether a frame belongs to TensorFlow, this package or code generated from it."""
    return frame.filename.startswith(script_files.HIDDEN) or script_files.is_generated(frame.filename)


def _text(error: BaseException) -> str | None:
    try:
        return str(error)
    except Exception:
        return None


def _named(error: BaseException, message: str) -> str:
    kind = type(error)
    if kind.__qualname__ == "MultilineMessageKeyError":  # autograph's own
        kind = KeyError
    module, name = kind.__module__, kind.__qualname__
    name = name if module in ("builtins", "__main__") else f"{module}.{name}"
    return f"{name}: {message}\n" if message else f"{name}\n"


def _show(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    text = _text_or_none(error, trace)
    if text is None or sys.stderr is None:
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write(text)
    sys.stderr.flush()


def _show_of_thread(failed: threading.ExceptHookArgs) -> None:
    """Displays a thread's error; ignores SystemExit, like `threading.excepthook`."""
    error, trace = failed.exc_value, failed.exc_traceback
    while trace is not None and trace.tb_frame.f_code.co_filename == threading.__file__:
        trace = trace.tb_next  # how the thread was started
    text = None if error is None or isinstance(error, SystemExit) else _text_or_none(error, trace)
    if text is None or sys.stderr is None:
        threading.__excepthook__(failed)
        return
    name = failed.thread.name if failed.thread is not None else threading.get_ident()
    sys.stderr.write(f"Exception in thread {name}:\n{text}")
    sys.stderr.flush()


def _text_or_none(error: BaseException, trace: types.TracebackType | None) -> str | None:
    """Returns the text to show, or None to leave it to Python."""
    if os.environ.get(ENVIRONMENT_VARIABLE, "").lower() == FULL:
        return None
    try:
        return display_text(error, trace)
    except Exception:  # an error that cannot be looked at is Python's to show
        return None
