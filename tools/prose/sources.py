"""The text in the sources: docstrings, messages, option help, comments, and tables that pages and messages quote.

A message is any other string of the package with words in it: errors, warnings, log lines, reasons and descriptions. In
C++ it is found by its quotes. Tables are the CSV files of the package and of `docs/data`.
"""

from __future__ import annotations

import ast
import csv
import io
import pathlib
import re
import tokenize
from collections.abc import Iterator

from prose import markdown
from prose.passages import ROOT, Passage

KINDS = ("docstrings", "messages", "help texts", "comments", "tables")
FOLDERS = ("tf_ipu_shim", "tools", "benchmarks")
TABLES = ("tf_ipu_shim", "docs/data")  # folders of CSV files
FEWEST_WORDS = 4  # of a message; shorter strings are names and parts
HOLE = "{}"  # stands for a value in a message
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Text in another language: schemas, scripts, C++, HTML, style sheets, regular expressions.
_EMBEDDED = re.compile(
    r"^\s*(message \w+ \{|import \w|from \w+ import|def \w+\(|#include|<|[.#]?[\w-]+ \{)|;\s*//|\\b|\\w", re.M
)
_SENTENCE_WORD = re.compile(r"\b(the|a|an|is|are|to|of|not|no|it|that|in)\b")
_TABLE_ROW = re.compile(r"\s*([\w.`/*-]+ {2,}\S|[│├└])")  # of a name and its meaning, or of a tree
_CPP_STRING = r'"(?:[^"\\\n]|\\.)*"'
_CPP_MESSAGE = re.compile(rf'{_CPP_STRING}(?:\s*(?:,[^";{{}}]*?,)?\s*{_CPP_STRING})*')
_CPP_COMMENT = re.compile(r"(?:^[ \t]*//.*\n)+", re.M)


def passages(kind: str) -> Iterator[Passage]:
    """Yields every passage of a kind (one of `KINDS`), file by file."""
    if kind == "tables":
        for path in sorted(path for folder in TABLES for path in (ROOT / folder).rglob("*.csv")):
            yield from cells(path, path.read_text(encoding="utf-8"))
        return
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if kind == "comments":
                yield from comments(path, source)
            else:
                yield from strings(path, ast.parse(source), kind)
        for path in sorted(path for ending in ("*.cc", "*.h", "*.hpp") for path in (ROOT / folder).rglob(ending)):
            yield from of_cpp(path, path.read_text(encoding="utf-8"), kind)


def cells(path: pathlib.Path, source: str) -> Iterator[Passage]:
    """The cells of a CSV file that are prose; not its heading."""
    rows = csv.reader(io.StringIO(source))
    for row in list(rows)[1:]:
        for text in filter(_is_prose, row):
            yield Passage(path, source.count("\n", 0, source.find(text.replace('"', '""'))) + 1, text)


def strings(path: pathlib.Path, tree: ast.Module, kind: str) -> Iterator[Passage]:
    """Docstrings, messages or option help of a Python file."""
    docstrings, help_texts, seen = _docstrings(tree), _help_texts(tree), set()
    for node in ast.walk(tree):
        text = _text_of(node)
        if text is None or id(node) in seen:
            continue
        seen |= {id(part) for part in ast.walk(node)}
        if id(node) in docstrings:
            if kind == "docstrings":
                yield from _docstring(path, node, text)
        elif kind == ("help texts" if id(node) in help_texts else "messages") and _is_prose(text):
            yield from markdown.passages(path, text, getattr(node, "lineno", 1))


def _docstrings(tree: ast.Module) -> set[int]:
    """Ids of the nodes that are docstrings, or strings that stand by themselves after a name that they describe."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _help_texts(tree: ast.Module) -> set[int]:
    arguments = ("help", "description", "epilog")
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in arguments}


def _text_of(node: ast.AST) -> str | None:
    """Returns the text of a literal, with `HOLE` for each value; None for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text_of(node.left), _text_of(node.right)
        return None if left is None or right is None else left + right
    return None


def _is_prose(text: str) -> bool:
    words = re.findall(r"(?<![\w./=-])[A-Za-z]+(?![\w./=-]*[_=/(])", text)
    return len(words) >= FEWEST_WORDS and bool(_SENTENCE_WORD.search(text)) and not _EMBEDDED.search(text)


def _docstring(path: pathlib.Path, node: ast.AST, text: str) -> Iterator[Passage]:
    """Yields the paragraphs of a docstring; each argument of a section is one, and examples are left out."""
    lines = []
    in_example = False
    for line in text.splitlines():
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        is_argument = re.match(r"\s+\*{0,2}[\w.]+( \([^)]*\))?: ", line)
        is_heading = re.match(r"\s*(Args|Returns|Yields|Raises|Example|Examples|Source|Note|Attributes)s?:\s*$", line)
        if in_example or is_heading:
            lines.append("")
        else:
            is_row = _TABLE_ROW.match(line)
            lines.append("- " + line.partition(": ")[2] if is_argument else ("- " if is_row else "") + line.strip())
    yield from markdown.passages(path, "\n".join(lines), getattr(node, "lineno", 1))


def comments(path: pathlib.Path, source: str) -> Iterator[Passage]:
    """Comments; consecutive lines are one, except those after code."""
    begins, gathered, column = 0, list[str](), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(noqa|type:|mypy:|!|ruff:)", token.string):
            is_behind_code = bool(token.line[: token.start[1]].strip())
            if gathered and (is_behind_code or token.start[1] < column or token.start[0] != begins + len(gathered)):
                yield Passage(path, begins, " ".join(gathered))
                gathered = []
            begins = begins if gathered else token.start[0]
            gathered.append(token.string.lstrip("# "))
            column = token.start[1] if is_behind_code else 0
    if gathered:
        yield Passage(path, begins, " ".join(gathered))


def _cpp_comment(path: pathlib.Path, comment: str, first_line: int) -> Iterator[Passage]:
    """Yields the paragraphs of a C++ comment; each argument of a list is one, and code is left out."""
    lines = []
    for line in comment.splitlines():
        text = line.strip().removeprefix("//")
        is_indented = text.startswith("   ")
        is_code = is_indented and text.endswith((";", "{", "}", ">"))
        is_argument = is_indented and re.match(r"\w+: ", text.strip())
        lines.append("" if is_code else "- " * bool(is_argument) + text.strip("/ "))
    yield from markdown.passages(path, "\n".join(lines), first_line)


def of_cpp(path: pathlib.Path, source: str, kind: str) -> Iterator[Passage]:
    """Messages or comments of a C++ file."""
    if kind == "comments":
        for found in _CPP_COMMENT.finditer(source):
            yield from _cpp_comment(path, found.group(), source.count("\n", 0, found.start()) + 1)
    elif kind == "messages":
        without_comments = re.sub(r"^[ \t]*(//|#).*$", "", source, flags=re.M)
        for found in _CPP_MESSAGE.finditer(without_comments):
            text = re.sub(r'"\s*"', "", re.sub(r'"\s*,[^"]*,\s*"', HOLE, found.group())).strip('"')
            if _is_prose(text):
                yield Passage(path, without_comments.count("\n", 0, found.start()) + 1, text)
