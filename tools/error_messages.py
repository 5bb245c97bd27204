"""All messages of errors that the package raises, read from its sources, and a page of them for the docs' site."""

from __future__ import annotations

import ast
import itertools
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tf_ipu_shim"
HOLE = "{}"
_TITLE = """# All errors

Every message of an error that the package itself raises, read from its sources; "…" stands for each value. A message
says what is wrong and what to do; what begins with a small letter is a reason that another message gives. Those that
users met first are explained in [Errors](errors.md). TensorFlow's and those of the plugin in C++ are not among them.
"""


class Message(NamedTuple):
    """A message of a `raise` statement.

    Args:
        path: the file, from the root of the sources.
        line: the line of the statement.
        error: the exception's class.
        text: `{}` stands for each value.
    """

    path: pathlib.PurePath
    line: int
    error: str
    text: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}"


def _text_of(node: ast.AST) -> str | None:
    """Returns the text of a literal; None for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text_of(node.left), _text_of(node.right)
        return None if left is None or right is None else left + right
    return None


def messages() -> Iterator[Message]:
    """Yields every literal message of a `raise` statement whose exception is made on the spot, file by file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                error = ast.unparse(node.exc.func).rpartition(".")[2]
                texts = [text for text in map(_text_of, node.exc.args) if text]
                if texts and re.match(r"[A-Z]\w*(Error|Exception)$", error):
                    yield Message(path.relative_to(ROOT), node.lineno, error, texts[-1])


def page() -> str:
    """Returns the page: a section for each layer of the package, with its messages in alphabetical order.

    Example:
        >>> page().splitlines()[0]
        '# All errors'
    """
    parts = [_TITLE]
    for room, found in itertools.groupby(sorted(messages(), key=_room), _room):
        rows = {f"| `{message.error}` | {_cell(message.text)} |" for message in found}
        rows_in_order = sorted(rows, key=lambda row: row.split(" | ", 1)[1].lower())
        parts.append("\n".join([f"## {room}\n", "| error | message |", "|---|---|", *rows_in_order, ""]))
    return "\n".join(parts)


def _room(message: Message) -> str:
    folders = message.path.parts[1:-1]
    return "/".join(folders[: 2 if folders[:1] == ("api",) else 1]) or "tf_ipu_shim"


def _cell(text: str) -> str:
    """Returns the text as Markdown shows it unchanged, in a line."""
    shown = re.sub(r"([*_<|\[\]\\])", r"\\\1", " ".join(text.replace(HOLE, "…").split()))
    return re.sub(r"`([^`]*)`", lambda code: "`" + re.sub(r"\\([*_<\[\]\\])", r"\1", code[1]) + "`", shown)
