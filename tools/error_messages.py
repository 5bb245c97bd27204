"""All messages of errors that the package raises, read from its sources, and a page of them for the docs' site."""

from __future__ import annotations

import ast
import itertools
import pathlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
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


def _text_of(node: ast.AST, texts: Mapping[str, ast.expr]) -> str | None:
    """Returns the text of a literal, with the strings that names in it stand for; None for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(part, texts) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text_of(node.left, texts), _text_of(node.right, texts)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.IfExp):
        return _text_of(node.body, texts)
    if isinstance(node, ast.Name) and node.id in texts:
        return _text_of(texts[node.id], {})
    return None


def _part(node: ast.expr, texts: Mapping[str, ast.expr]) -> str:
    if isinstance(node, ast.FormattedValue):
        text = _text_of(node.value, texts) if isinstance(node.value, ast.Name) else None
        return HOLE if text is None else text
    return _text_of(node, texts) or HOLE


def _named_texts(tree: ast.Module) -> dict[str, ast.expr]:
    """Returns the strings that a file assigns to a name, if the name has one value only."""
    nodes = list(ast.walk(tree))
    stored = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    stored.update(node.arg for node in nodes if isinstance(node, ast.arg))
    return {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and stored[target.id] == 1 and _text_of(node.value, {})
    }


def messages() -> Iterator[Message]:
    """Yields every literal message of a `raise` statement whose exception is made on the spot, file by file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = _named_texts(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                error = ast.unparse(node.exc.func).rpartition(".")[2]
                texts = [text for argument in node.exc.args if (text := _text_of(argument, named))]
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
