"""Functions that C++ headers declare without a body, members of classes included, as libclang sees them."""

import pathlib
import subprocess

from clang import cindex

_FUNCTIONS = (
    cindex.CursorKind.FUNCTION_DECL,
    cindex.CursorKind.CXX_METHOD,
    cindex.CursorKind.CONSTRUCTOR,
    cindex.CursorKind.DESTRUCTOR,
    cindex.CursorKind.CONVERSION_FUNCTION,
)
_SCOPES = (
    cindex.CursorKind.NAMESPACE,
    cindex.CursorKind.CLASS_DECL,
    cindex.CursorKind.STRUCT_DECL,
    cindex.CursorKind.UNEXPOSED_DECL,
    cindex.CursorKind.LINKAGE_SPEC,
)


def declared_functions(headers, include):
    """Mangled names of the functions of headers, with how C++ writes them."""
    source = "".join(f"#include <{header.relative_to(include)}>\n" for header in headers)
    arguments = ["-x", "c++", "-std=c++17", f"-I{include}", *_system_directories()]
    unit = cindex.Index.create().parse("all.cpp", arguments, [("all.cpp", source)])
    errors = [message.spelling for message in unit.diagnostics if message.severity >= cindex.Diagnostic.Error]
    assert not errors
    declared, defined = {}, set()
    wanted = {str(header) for header in headers}
    for cursor in _functions(unit.cursor):
        if cursor.is_definition() or cursor.is_default_method() or cursor.is_deleted_method():
            defined.add(cursor.mangled_name)
        elif not cursor.is_pure_virtual_method() and str(cursor.location.file) in wanted:
            declared[cursor.mangled_name] = f"{cursor.semantic_parent.spelling}::{cursor.displayname}"
    return {mangled: name for mangled, name in declared.items() if mangled not in defined}


def _system_directories():
    """Where g++ finds the standard library."""
    words = ["g++", "-x", "c++", "-E", "-v", "/dev/null"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    listed = said.split("search starts here:")[2].split("End of search list")[0]
    return [f"-isystem{line.strip()}" for line in listed.splitlines() if line.strip()]


def _functions(parent):
    for cursor in parent.get_children():
        if cursor.kind in _FUNCTIONS:
            yield cursor
        elif cursor.kind in _SCOPES and not cursor.location.is_in_system_header:
            yield from _functions(cursor)


def exported(libraries: list[pathlib.Path]):
    """Mangled names of what built libraries define."""
    words = ["nm", "-D", "--defined-only", *map(str, libraries)]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return {line.split()[2] for line in listed.splitlines() if len(line.split()) == 3}
