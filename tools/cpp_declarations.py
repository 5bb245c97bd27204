"""Declarations of C++ headers as libclang sees them, with types only: what a program must see to call a function."""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

_KEEP_GOING = 0x200  # after headers of other libraries that are not there


@dataclasses.dataclass(frozen=True)
class Declaration:
    """One declaration of a name.

    Args:
        header: the header that declares it, as programs include it.
        name: the name with its namespaces.
        text: the declaration in its namespace, without the names of parameters.
        includes: the headers that declare the types in it.
    """

    header: str
    name: str
    text: str
    includes: tuple[str, ...]


def declarations(headers: Sequence[str], folder: pathlib.Path, *folders: pathlib.Path) -> list[Declaration]:
    """Returns the functions and types that headers of `folder` declare in namespaces; `folders` have what they use."""
    from clang import cindex

    source = "".join(f"#include <{header}>\n" for header in headers)
    arguments = ["-x", "c++", "-std=c++17", *(f"-I{each}" for each in (folder, *folders)), *_system_directories()]
    unit = cindex.Index.create().parse("all.cpp", arguments, [("all.cpp", source)], options=_KEEP_GOING)
    found: dict[Declaration, None] = {}
    for path, cursor in _declared(cindex, unit.cursor, ""):
        header = _header(cursor, folder)
        if header is not None and header in headers and (text := _text(cindex, cursor)):
            includes = sorted({*_includes(cursor, (folder, *folders))} - {header})
            found.setdefault(Declaration(header, path, text, tuple(includes)))
    return list(found)


def _system_directories() -> list[str]:
    """Where g++ finds the standard library."""
    words = ["g++", "-x", "c++", "-E", "-v", "/dev/null"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    listed = said.split("search starts here:")[2].split("End of search list")[0]
    return [f"-isystem{line.strip()}" for line in listed.splitlines() if line.strip()]


def _declared(cindex: Any, parent: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Functions and types in namespaces, each with its full name."""
    kinds = cindex.CursorKind
    for cursor in parent.get_children():
        name = f"{path}::{cursor.spelling}".removeprefix("::")
        if cursor.kind == kinds.NAMESPACE and not cursor.location.is_in_system_header:
            yield from _declared(cindex, cursor, name)
        elif path and cursor.kind in (
            *(kinds.FUNCTION_DECL, kinds.FUNCTION_TEMPLATE, kinds.CLASS_DECL, kinds.STRUCT_DECL, kinds.ENUM_DECL),
            *(kinds.CLASS_TEMPLATE, kinds.TYPE_ALIAS_DECL),
        ):
            yield name, cursor


def _header(cursor: Any, *folders: pathlib.Path) -> str | None:
    """Returns how programs include the header that declares the cursor; None for headers of other folders."""
    file = pathlib.Path(str(cursor.location.file))
    return next((str(file.relative_to(folder)) for folder in folders if file.is_relative_to(folder)), None)


def _text(cindex: Any, cursor: Any) -> str:
    kinds = cindex.CursorKind
    if cursor.kind == kinds.CLASS_TEMPLATE:
        return f"template <typename...> class {cursor.spelling};"
    if cursor.kind not in (kinds.FUNCTION_DECL, kinds.FUNCTION_TEMPLATE):
        return f"class {cursor.spelling};"
    children = list(cursor.get_children())
    parameters = [child for child in children if child.kind == kinds.PARM_DECL]
    types = ", ".join(_spelled(each.type) + (" = {}" if _has_default(each) else "") for each in parameters)
    templates = [f"typename {each.spelling}" for each in children if each.kind == kinds.TEMPLATE_TYPE_PARAMETER]
    start = f"template <{', '.join(templates)}> " if templates else ""
    return f"{start}{_spelled(cursor.result_type)} {cursor.spelling}({types});"


def _has_default(parameter: Any) -> bool:
    return any(token.spelling == "=" for token in parameter.get_tokens())


def _spelled(type_: Any) -> str:
    canonical = type_.get_canonical().spelling
    text = type_.spelling if "type-parameter" in canonical else canonical
    return text.replace("std::basic_string<char>", "std::string").replace("std::__cxx11::", "std::")


def _includes(cursor: Any, folders: Sequence[pathlib.Path]) -> Iterator[str]:
    """Headers of the folders that declare a type of a function."""
    waiting = [cursor.result_type, *(argument.type for argument in cursor.get_arguments() if argument)]
    while waiting:
        type_ = waiting.pop().get_canonical()
        if type_.get_pointee().spelling:
            waiting.append(type_.get_pointee())
        waiting += [type_.get_template_argument_type(i) for i in range(max(0, type_.get_num_template_arguments()))]
        if header := _header(type_.get_declaration(), *folders):
            yield header
