"""Finds the vertices in a codelet's preprocessed source with libclang: names of classes, instantiations and members.

The C++ compiler finds kinds, types and offsets of members: only it has the layout.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterator
from typing import Any

from tf_ipu_shim import errors

_KEEP_GOING, _INCOMPLETE = 0x200, 0x02
_ARGUMENTS = ("-x", "c++-cpp-output", "-std=gnu++17", "-fno-access-control", "-ferror-limit=0", "-w")
_FILE = "codelet.ii"


@dataclasses.dataclass(frozen=True)
class Member:
    """A data member, and the user's line that declares it."""

    name: str
    file: str
    line: int


@dataclasses.dataclass(frozen=True)
class VertexClass:
    """A class that may be a vertex.

    Args:
        type: the class as C++ names it in `scope`, with template arguments.
        scope: names of the namespaces in which that is written, from the outermost.
        members: its own and its base classes' data members.
        constructed: whether its default constructor can be called: a declared one may have no definition.
    """

    type: str
    scope: tuple[str, ...]
    members: tuple[Member, ...]
    constructed: bool


def find_classes(source: str) -> list[VertexClass]:
    """Returns the classes of a preprocessed source that have a base class, in order."""
    cindex = _import_libclang()
    unit = cindex.Index.create().parse(_FILE, list(_ARGUMENTS), [(_FILE, source)], options=_KEEP_GOING | _INCOMPLETE)
    found: dict[tuple[tuple[str, ...], str], VertexClass] = {}
    for cursor in _classes(cindex, unit.cursor):
        described = _describe(cindex, cursor)
        found.setdefault((described.scope, described.type), described)
    return list(found.values())


def _import_libclang() -> Any:
    """Returns the `clang.cindex` module; if it is missing or lacks its library, an error says what to install."""
    reason = "its library libclang.so cannot be loaded"
    try:
        from clang import cindex

        if cindex.conf.lib:
            return cindex
    except ImportError:
        reason = "the Python package libclang is not installed"
    except Exception as error:  # the type is in the module
        if type(error).__name__ != "LibclangError":
            raise
    raise errors.PluginError(
        f"popc cannot read the codelet: {reason}; expected version 16 or newer. "
        "Install it: pip install 'tf_ipu_shim[codelets]'."
    )


def _classes(cindex: Any, parent: Any) -> Iterator[Any]:
    """Definitions of classes with a base class outside system headers, those in namespaces included."""
    kinds = cindex.CursorKind
    for cursor in parent.get_children():
        if cursor.location.is_in_system_header:
            continue
        if cursor.kind in (kinds.NAMESPACE, kinds.LINKAGE_SPEC, kinds.UNEXPOSED_DECL):
            yield from _classes(cindex, cursor)
        elif cursor.kind in (kinds.CLASS_DECL, kinds.STRUCT_DECL) and cursor.is_definition():
            if _bases(cindex, _pattern(cindex, cursor)) and not _is_extern(cursor):
                yield cursor


def _is_extern(cursor: Any) -> bool:
    """Returns whether it is `extern template class Name<T>;`, which is defined elsewhere."""
    first = next(iter(cursor.get_tokens()), None)
    return first is not None and first.spelling == "extern"


def _pattern(cindex: Any, cursor: Any) -> Any:
    """Returns the template of an explicit instantiation, or the class itself if its members are written out."""
    if any(child.kind.is_declaration() or child.kind.name == "CXX_BASE_SPECIFIER" for child in cursor.get_children()):
        return cursor
    template = cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor)
    return cursor if template is None or template.kind.is_invalid() else template


def _bases(cindex: Any, cursor: Any) -> list[Any]:
    return [child for child in cursor.get_children() if child.kind == cindex.CursorKind.CXX_BASE_SPECIFIER]


def _describe(cindex: Any, cursor: Any) -> VertexClass:
    record = cursor.type.get_canonical()
    return VertexClass(
        record.spelling.replace("(anonymous namespace)::", ""),
        _scope(cindex, cursor),
        tuple(_member(cindex, field) for field in _fields(cindex, record)),
        _has_constructor(cindex, _pattern(cindex, cursor)),
    )


def _scope(cindex: Any, cursor: Any) -> tuple[str, ...]:
    """Namespaces around the place of a class or an explicit instantiation: its arguments are names of these."""
    names: list[str] = []
    parent = cursor.lexical_parent
    while parent is not None and parent.kind == cindex.CursorKind.NAMESPACE:
        if parent.spelling and "(anonymous" not in parent.spelling:  # members of one without a name are found outside
            names.insert(0, parent.spelling)
        parent = parent.lexical_parent
    return tuple(names)


def _fields(cindex: Any, record: Any) -> Iterator[Any]:
    """Fields of a class, base classes' first; of a template's bases only fields that no argument decides."""
    for base in _bases(cindex, _pattern(cindex, record.get_declaration())):
        found = base.type.get_canonical()
        if found.get_declaration().is_definition():
            yield from _fields(cindex, found)
    yield from record.get_fields()


def _member(cindex: Any, field: Any) -> Member:
    file, line = _presumed_place(cindex, field)
    if not field.spelling:
        raise errors.PluginError(
            f"popc cannot compile {file}:{line}: a member of a vertex has no name; expected a named one. Name it."
        )
    if field.is_bitfield():
        raise errors.PluginError(
            f"popc cannot compile {file}:{line}: {field.spelling} is a bit field; expected a whole member. "
            "Remove its width."
        )
    return Member(field.spelling, file, line)


def _presumed_place(cindex: Any, cursor: Any) -> tuple[str, int]:
    """File and line by the line markers that the preprocessor left."""
    library = cindex.conf.lib
    name, line, column = cindex._CXString(), ctypes.c_uint(), ctypes.c_uint()
    library.clang_getPresumedLocation.restype = None
    library.clang_getPresumedLocation(cursor.location, ctypes.byref(name), ctypes.byref(line), ctypes.byref(column))
    return str(library.clang_getCString(name)), line.value


def _has_constructor(cindex: Any, pattern: Any) -> bool:
    """Returns whether a default constructor is implicit or has a body."""
    declared = [
        child
        for child in pattern.get_children()
        if child.kind == cindex.CursorKind.CONSTRUCTOR and not list(child.get_arguments())
    ]
    return all(child.get_definition() is not None or child.is_default_method() for child in declared)
