"""Cleans TensorFlow's error messages of duplicates, stack traces, node names and internal frames."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tf_ipu_shim.runtime.errors import script_files

# A placer's report of reference variables: kernels and nodes by the dozen after what it says.
_PLACER = re.compile(r"\n*Colocation Debug Info:.*", re.S)
_FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>\S+)')
_DETECTED = re.compile(r"^\s*Detected at node .* defined at \(most recent call last\):$")
_STACK = re.compile(r"^\s*Original stack trace for .*:$")
_NODE = re.compile(r"^\s*Node: .*$")
_TAG = re.compile(r"\s*\[\[(\{\{[^{}]*\}\}|[^\[\]]*)\]\]")
_OP = re.compile(r"\s*\[Op:[^\]]*\]( name:.*)?\s*$")
_FUNCTION = re.compile(r"\{\{function_node [^{}]*\}\}\s*")
_ROOTS = re.compile(r"^\s*\d+ root error\(s\) found\.$")
_ROOT = re.compile(r"^\s*\(\d+\)\s*(?:[A-Za-z_]+: )?(?P<text>.*)$")
# An error of Python that an op has called: what it says, and where.
_OF_PYTHON = re.compile(
    r"\A(?P<said>(?:.*\n)+?)Traceback \(most recent call last\):\n(?P<frames>(?:[ \t]+.*\n|\n)+)(?P<rest>(?s:.*))"
)
# Autograph's text for an error in a converted function. Keras puts the layer before it and the arguments after it.
_IN_USER_CODE = re.compile(
    r"\A(?P<before>(?:.*\n)*?)in user code:\n\n(?P<frames>(?:    .+\n)+)\n    [\w.]+: (?P<said>.*(?:\n(?:    .*)?)*)"
    r"(?P<after>(?:\n\S(?s:.*))?)\Z"
)
_MARK = re.compile(r"\s+\*+$")
# Strategies that TensorFlow names by their addresses.
_MIXED = re.compile(r"Mixing different tf\.distribute\.Strategy objects: .*")
# The class by which TensorFlow 2.21 calls a function of a dataset.
_CALLER = re.compile(r"Error in user-defined function passed to \S+ transformation with iterator: \S+: ")
# Where a tensor of a function was made, by the numbers of TensorFlow's own objects.
_OUT_OF_SCOPE = re.compile(r"\n\nThe tensor <.*> cannot be accessed from here, because it was defined in FuncGraph.*")
# How TensorFlow looked for a variable.
_DEBUG = re.compile(r" Debug info: container=.* \(Could not find resource: \S+\)")
_OBJECT = re.compile(r"<(?:\w+\.)*(\w+) object at 0x[0-9a-f]+>")
# Lines of TensorFlow's around messages and stack traces.
_FRAMEWORK = re.compile(r"^\s*(Node: .*|Graph execution error:|\d+ (successful operations|derived errors ignored)\.)$")


def clean(message: str) -> str:
    """Returns a TensorFlow error's message without repetition, and the script's line.

    Example:
        >>> clean("Graph execution error:\\n\\nNode: 'a'\\nIt failed.\\n\\t [[{{node a}}]]")
        'It failed.'
    """
    lines, users = _split_locations(_CALLER.sub("", _FUNCTION.sub("", message)).split("\n"))
    cleaned = _PLACER.sub("", "\n".join(lines)).split("\n")
    text = _only_root("\n".join(_script_frames(cleaned)).strip())
    text = _OUT_OF_SCOPE.sub(
        "", _DEBUG.sub("", _MIXED.sub(lambda match: _OBJECT.sub(r"\1", match[0]), _without_repetition(text)))
    )
    text = re.sub(r"\n{3,}", "\n\n", text)
    if users and not re.search(r"\S+\.py:\d+|File \"", text):
        text += f"\nAt {users[-1]}."
    return text


def split_frames(error_message: str) -> tuple[list[str], str]:
    """Separates autograph's frames from the rest of a message.

    Example:
        >>> split_frames('in user code:\\n\\n    File "a.py", line 3, in f  *\\n        g()\\n\\n    KeyError: 1')
        (['  File "a.py", line 3, in f\\n', '    g()\\n'], '1')
    """
    match = _IN_USER_CODE.match(error_message)
    if match is None:
        return [], error_message
    frames, hidden = [], False
    for line in match["frames"].split("\n"):
        frame = _FRAME.match(line)
        hidden = script_files.is_of_called_package(frame["file"]) if frame else hidden
        if not hidden:
            frames.append(_MARK.sub("", line[2:]) if frame else f"    {line.strip()}")
    inner, message = split_frames("\n".join(line.removeprefix("    ") for line in match["said"].split("\n")).strip())
    error_message = "\n".join(filter(None, (match["before"].strip(), message, match["after"].strip())))
    return [*(f"{line}\n" for line in frames if line.strip()), *inner], error_message


def _split_locations(lines: list[str]) -> tuple[list[str], list[str]]:
    """Separates the message's lines from script locations in stack traces."""
    kept_lines, users, in_stack = [], [], False
    for line in lines:
        frame = _FRAME.match(line) if in_stack else None
        if _DETECTED.match(line) or _STACK.match(line):
            in_stack = True
        elif frame:
            if script_files.is_users(frame["file"]):
                users.append(f"{frame['file']}:{frame['line']}, in {frame['name'].rstrip(',')}")
        elif _FRAMEWORK.match(_OP.sub("", line)):
            in_stack = in_stack and not _NODE.match(line)
        elif not in_stack or not line.startswith("    "):  # there it is the frame's source
            in_stack = in_stack and not line.strip()
            kept_lines.append(_OP.sub("", _TAG.sub("", line)).rstrip())
    return kept_lines, users


def _only_root(text: str) -> str:
    """Merges identical root errors."""
    lines = text.split("\n")
    if not any(map(_ROOTS.match, lines)):
        return text
    roots: list[str] = []
    for line in lines:
        while match := _ROOT.match(line):
            roots.append("")
            line = match["text"]
        if _ROOTS.match(line):
            continue
        if roots:
            roots[-1] += f"{line}\n"
        elif line.strip():
            roots.append(f"{line}\n")
    return "\n".join(dict.fromkeys(filter(None, (root.strip() for root in roots))))


def _script_frames(lines: list[str]) -> Iterator[str]:
    """Lines without frames of TensorFlow and this package, and with the script's files in place of autograph's.

    Autograph puts a traceback into its own message, and TensorFlow one of Python that ops call.
    """
    hidden, margin = False, ""
    for line in lines:
        frame = _FRAME.match(line)
        if frame is None:
            hidden = hidden and line.startswith(f"{margin}  ")  # its source
            if not hidden:
                yield line
            continue
        margin = line[: len(line) - len(line.lstrip())]
        origin = script_files.origin(frame["file"], int(frame["line"]))
        hidden = frame["file"].startswith((*script_files.HIDDEN, "<frozen")) or origin is not None
        if origin is not None:
            yield f'{margin}File "{origin.file}", line {origin.line}, in {origin.function}'
            yield f"{margin}  {origin.source.strip()}"
        elif not hidden:
            yield line


def _without_repetition(text: str) -> str:
    """Removes the message that Python repeats after a traceback."""
    match = _OF_PYTHON.search(text)
    if match is None:
        return text
    message, rest = match["said"].rstrip(), match["rest"]
    for repeated in (message, message.partition(":")[0]):
        if rest == repeated or rest.startswith(f"{repeated}\n"):
            return "\n".join([message, match["frames"].strip("\n"), rest[len(repeated) :].strip()]).rstrip()
    return text
