"""How an uncaught error of a script is shown: once, last and short.

An error of a program passes through TensorFlow, which adds its own frames, lists where each op was made, and in a
session's graph repeats the message. A process that uses `ipu` shows the script's own lines, then the error: what,
where, what to do. `TF_IPU_SHIM_TRACEBACK=full` leaves everything as Python and TensorFlow print it; so do debuggers,
notebooks and test runners, which show errors themselves. What an `except` clause sees is never changed.
"""

from __future__ import annotations

import os
import pathlib
import re
import sys
import sysconfig
import threading
import traceback
import types
from collections.abc import Iterator

from tf_ipu_shim import patches

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_TRACEBACK"
FULL = "full"
_OWN = str(pathlib.Path(__file__).resolve().parents[1])
_STANDARD = (sysconfig.get_path("stdlib"), "<frozen ")
_PACKAGES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_HIDDEN = (
    _OWN + os.sep,
    *(
        os.path.join(directory, name) + os.sep
        for directory in _PACKAGES
        for name in ("tensorflow", "tensorflow_estimator", "keras", "tf_keras")
    ),
)
_HEADER = f"Traceback (most recent call last; {ENVIRONMENT_VARIABLE}={FULL} shows all frames):"

# What Python writes between an error and the one that it led to.
_RELATIONS = {
    "cause": "\nThe above exception was the direct cause of the following exception:\n\n",
    "context": "\nDuring handling of the above exception, another exception occurred:\n\n",
}
# What TensorFlow says of a dataset that has ended; of an infeed's we say more ourselves.
_END = re.compile(r"End of sequence(?!:)")
_END_HINT = "\nThe dataset has no more elements: end it with .repeat(), or ask for fewer iterations."
# What many scripts for IPUs begin with, run without `--tf1`.
_OLD_NAME_HINT = (
    "\n{name} is a name of TensorFlow 1: run the script with `tf-ipu run --tf1`, or have it "
    "`import tensorflow.compat.v1 as tf`."
)
# What TensorFlow 2 says to scripts that make graphs, as those of TensorFlow 1 do. Checked on 2.15.1 and 2.21.0.
_NO_GRAPH = re.compile(
    r"compatible with eager execution|when eager execution is enabled|The Session graph is empty|EagerTensor'>"
)
_NO_GRAPH_HINT = (
    "\nA script of TensorFlow 1 makes a graph: run it with `tf-ipu run --tf1`, or have it call "
    "tensorflow.compat.v1.disable_v2_behavior() first."
)
# A placer's report of reference variables: kernels and nodes by the dozen after what it says.
_PLACER = re.compile(r"\n*Colocation Debug Info:.*", re.S)
_REFERENCE = re.compile(r"Could not satisfy explicit device specification '\S*IPU.*\bVariable(V2)?\b", re.S)
_REFERENCE_HINT = (
    "\nA variable on an IPU is a resource variable: call tf.compat.v1.enable_resource_variables() before it is made, "
    "or make it with get_variable(..., use_resource=True)."
)
_NO_GRADIENT = re.compile(r"^gradient registry has no entry for: (?P<op>\w+)$")
_NO_GRADIENT_HINT = (
    "\nTensorFlow has no gradient of the op {op}{made}: put tf.stop_gradient around its result, or leave it out of "
    "what is trained."
)
_OTHER_FRAMEWORKS = frozenset({"popart", "popxl", "poptorch", "poplar"})
_OTHER_FRAMEWORK_HINT = (
    "\n{name} is another part of Graphcore's SDK: tf_ipu_shim emulates its TensorFlow, and nothing else."
)
_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>\S+)')
_DETECTED = re.compile(r"^\s*Detected at node .* defined at \(most recent call last\):$")
_STACK = re.compile(r"^\s*Original stack trace for .*:$")
_NODE = re.compile(r"^\s*Node: .*$")
_TAG = re.compile(r"\s*\[\[(\{\{[^{}]*\}\}|[^\[\]]*)\]\]")
_OP = re.compile(r"\s*\[Op:[^\]]*\]\s*$")
_FUNCTION = re.compile(r"\{\{function_node [^{}]*\}\}\s*")
_ROOTS = re.compile(r"^\s*\d+ root error\(s\) found\.$")
_ROOT = re.compile(r"^\s*\(\d+\)\s*(?:[A-Za-z_]+: )?(?P<text>.*)$")
# Lines of TensorFlow's around messages and stack traces.
_FRAMEWORK = re.compile(r"^\s*(Node: .*|Graph execution error:|\d+ (successful operations|derived errors ignored)\.)$")


def install() -> None:
    """Shows uncaught errors of this process and its threads this way, unless something else shows them already."""
    _install_for_threads()
    if sys.excepthook is not sys.__excepthook__:
        return
    stock = sys.excepthook
    patches.change(
        "sys.excepthook",
        lambda: setattr(sys, "excepthook", _show),
        lambda: setattr(sys, "excepthook", stock),
        why="an uncaught error is shown with the script's own lines and without TensorFlow's repetitions",
        undone="it is Python's own again",
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
        undone="it is Python's own again",
    )


def is_users(file: str) -> bool:
    """Whether a source file is the user's own: no package's, not Python's, not made by autograph.

    Args:
        file: its path.

    Example:
        >>> is_users("/home/me/train.py"), is_users(os.__file__)
        (True, False)
    """
    if os.path.basename(file).startswith("__autograph_generated_file"):
        return False
    return not file.startswith((_OWN, *_STANDARD, *_PACKAGES))


def shown(error: BaseException, trace: types.TracebackType | None = None) -> str | None:
    """An error as a script's user is shown it.

    Args:
        error: that nobody caught.
        trace: its traceback; the error's own when left out.

    Returns:
        The text; None where nothing of TensorFlow's or ours is in it, so that Python's own is as good.
    """
    links = list(_links(error, trace or error.__traceback__))
    if not any(link.changed for link in links):
        return None
    text = ""
    for link in links:
        if text and not link.frames:
            continue  # TensorFlow raised it anew
        header = _HEADER if not text else "Traceback (most recent call last):"
        between = _RELATIONS[link.relation] if text else ""
        text = "".join([f"{header}\n", *link.frames, *link.message, between, text])
    return text


def clean(message: str) -> str:
    """What an error of TensorFlow's says, once, and where in the script.

    Args:
        message: such as a session's, with the ops' stack traces.

    Returns:
        The message alone. A line of the script that the stack traces name is added, if none is named in it.

    Example:
        >>> clean("Graph execution error:\\n\\nNode: 'a'\\nIt failed.\\n\\t [[{{node a}}]]")
        'It failed.'
    """
    kept, users = _told_apart(_FUNCTION.sub("", message).split("\n"))
    said = _PLACER.sub("", "\n".join(kept)).split("\n")
    text = _only_root("\n".join(_without_hidden_frames(said)).strip())
    text = re.sub(r"\n{3,}", "\n\n", text)
    if users and not re.search(r"\S+\.py:\d+|File \"", text):
        text += f"\nAt {users[-1]}."
    return text


def _told_apart(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of the message itself, and the script's places in stack traces."""
    kept, users, in_stack = [], [], False
    for line in lines:
        frame = _FRAME.match(line) if in_stack else None
        if _DETECTED.match(line) or _STACK.match(line):
            in_stack = True
        elif frame:
            if is_users(frame["file"]):
                users.append(f"{frame['file']}:{frame['line']}, in {frame['name'].rstrip(',')}")
        elif _FRAMEWORK.match(_OP.sub("", line)):
            in_stack = in_stack and not _NODE.match(line)
        elif not in_stack or not line.startswith("    "):  # there it is the frame's source
            in_stack = in_stack and not line.strip()
            kept.append(_OP.sub("", _TAG.sub("", line)).rstrip())
    return kept, users


def _only_root(text: str) -> str:
    """One of several root errors where all say the same. A program's are those of a root of the graph around it."""
    lines = text.split("\n")
    if not any(map(_ROOTS.match, lines)):
        return text
    roots: list[str] = []
    for line in lines:
        while found := _ROOT.match(line):
            roots.append("")
            line = found["text"]
        if _ROOTS.match(line):
            continue
        if roots:
            roots[-1] += f"{line}\n"
        elif line.strip():
            roots.append(f"{line}\n")
    return "\n".join(dict.fromkeys(filter(None, (root.strip() for root in roots))))


def _without_hidden_frames(lines: list[str]) -> Iterator[str]:
    """Lines without the frames of TensorFlow and ours, which autograph puts into a message of its own."""
    hidden, margin = False, ""
    for line in lines:
        frame = _FRAME.match(line)
        if frame:
            hidden, margin = frame["file"].startswith(_HIDDEN), line[: len(line) - len(line.lstrip())]
        elif hidden and line.startswith(f"{margin}  "):
            continue  # its source
        else:
            hidden = False
        if not hidden:
            yield line


class _Link:
    """One error of a chain: the frames and the message that are shown, and whether that is less than all."""

    def __init__(self, error: BaseException, trace: types.TracebackType | None, relation: str) -> None:
        whole = traceback.TracebackException(type(error), error, trace, compact=True)
        summary = traceback.StackSummary.from_list(list(_kept(whole.stack)))
        message = list(whole.format_exception_only())
        self.relation = relation
        self.frames = summary.format() if summary or relation else whole.stack.format()
        self.message = message
        self.changed = len(summary) < len(whole.stack)
        text = _text(error)
        hint = "" if text is None else _hint(error, text)
        if text is not None and not isinstance(error, SyntaxError) and (hint or clean(text) != text):
            self.message = [_named(error, clean(text) + hint)]
            self.changed = True


def _hint(error: BaseException, text: str) -> str:
    """What to do, where neither TensorFlow nor Python says it."""
    if _END.search(text):
        return _END_HINT
    if _REFERENCE.search(text):
        return _REFERENCE_HINT
    found = _NO_GRADIENT.match(text) if isinstance(error, LookupError) else None
    if found:
        return _NO_GRADIENT_HINT.format(op=found["op"], made=_differentiated(error))
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _OTHER_FRAMEWORKS:
        return _OTHER_FRAMEWORK_HINT.format(name=error.name)
    if isinstance(error, (RuntimeError, TypeError)) and _NO_GRAPH.search(text) and _is_eager():
        return _NO_GRAPH_HINT
    return _old_name_hint(error)


def _is_eager() -> bool:
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and tensorflow.compat.v1.executing_eagerly_outside_functions()


def _differentiated(error: BaseException) -> str:
    """The op whose gradient was asked for: its name, which has its layer's, and the script's line.

    What a tape calls for each op (`building/sharded_tape`) has the op's results. Checked on 2.15.1 and 2.21.0.
    """
    calls = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if "outputs" in frame.f_locals]
    if not calls:
        return ""
    outputs = calls[-1].f_locals["outputs"]
    op = getattr(outputs[0], "op", None) if isinstance(outputs, (list, tuple)) and outputs else None
    if op is None:
        return ""
    own = [frame for frame in op.traceback or () if is_users(frame.filename)]
    line = f", made at {own[-1].filename}:{own[-1].lineno}, in {own[-1].name}" if own else ""
    return f" ({op.name}{line})"


def _old_name_hint(error: BaseException) -> str:
    """What is said of a name that `tensorflow` has no more; nothing of others."""
    if not isinstance(error, AttributeError):
        return ""
    module, name = error.obj, str(error.name)
    if not isinstance(module, types.ModuleType) or module.__name__ != "tensorflow":
        return ""
    if name != "contrib" and not hasattr(module.compat.v1, name):
        return ""
    return _OLD_NAME_HINT.format(name=f"tf.{name}")


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


def _kept(stack: traceback.StackSummary) -> Iterator[traceback.FrameSummary]:
    """The frames that are neither TensorFlow's nor ours, nor those of Python's library between or below these."""
    below = False
    of_library: list[traceback.FrameSummary] = []
    for frame in stack:
        generated = os.path.basename(frame.filename).startswith("__autograph_generated_file")
        if frame.filename.startswith(_HIDDEN) or generated:
            below = True
            of_library.clear()
        elif frame.filename.startswith(_STANDARD) and not frame.filename.startswith(_PACKAGES):
            if not below:
                of_library.append(frame)
        else:
            below = False
            yield from of_library
            of_library.clear()
            yield frame
    yield from of_library


def _text(error: BaseException) -> str | None:
    try:
        return str(error)
    except Exception:
        return None


def _named(error: BaseException, text: str) -> str:
    module, name = type(error).__module__, type(error).__qualname__
    name = name if module in ("builtins", "__main__") else f"{module}.{name}"
    return f"{name}: {text}\n" if text else f"{name}\n"


def _show(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    text = _wanted(error, trace)
    if text is None or sys.stderr is None:
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write(text)
    sys.stderr.flush()


def _show_of_thread(failed: threading.ExceptHookArgs) -> None:
    """As `threading.excepthook`: nothing is shown of a thread that ends itself by SystemExit."""
    error, trace = failed.exc_value, failed.exc_traceback
    while trace is not None and trace.tb_frame.f_code.co_filename == threading.__file__:
        trace = trace.tb_next  # how the thread was started
    text = None if error is None or isinstance(error, SystemExit) else _wanted(error, trace)
    if text is None or sys.stderr is None:
        threading.__excepthook__(failed)
        return
    name = failed.thread.name if failed.thread is not None else threading.get_ident()
    sys.stderr.write(f"Exception in thread {name}:\n{text}")
    sys.stderr.flush()


def _wanted(error: BaseException, trace: types.TracebackType | None) -> str | None:
    """The text to show; None where Python shall show the error."""
    if os.environ.get(ENVIRONMENT_VARIABLE, "").lower() == FULL:
        return None
    try:
        return shown(error, trace)
    except Exception:  # an error that cannot be looked at is Python's to show
        return None
