"""Writes the C++ source that registers the vertices of a codelet's source."""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.poplar_sdk.toolchain.codelet_reader import Member, VertexClass

HEADER = "poplar/detail/vertex_registration.hpp"
_NAMESPACE = "poplar_popc_registration"


def table_function(index: int) -> str:
    """Returns the C++ function with the vertices of source number `index`."""
    return f"poplar_popc_vertices_{index}"


def write(classes: Sequence[VertexClass], source: str, index: int, tables: int) -> str:
    """Returns the code after a preprocessed source; in the last of `tables` sources, also the exported function."""
    lines = ['# 1 "<registration of vertices>"']
    for number, described in enumerate(classes):
        lines += _vertex_lines(described, number)
    lines += [
        '# 1 "<registration of vertices>"',
        f"std::size_t {table_function(index)}(poplar::detail::Vertex* vertices) {{",
        "  std::size_t count = 0;",
        *(f"  {_qualified(described)}::{_add(number)}(vertices, count);" for number, described in enumerate(classes)),
        "  return count;",
        "}",
        f"std::size_t {table_function(index)}_most() {{ return {len(classes)}; }}",
    ]
    if index == tables - 1:
        lines += _export_lines(tables)
    return "\n".join(["", *lines, ""])


def _add(number: int) -> str:
    return f"add_{number}"


def _qualified(described: VertexClass) -> str:
    """Returns the namespace of a class's registration."""
    return "::".join(["", *described.scope, _NAMESPACE])


def _vertex_lines(described: VertexClass, number: int) -> list[str]:
    """A function that adds one vertex; each field is at the user's line, which compiler errors then show."""
    opened = "".join(f"namespace {name} {{ " for name in (*described.scope, _NAMESPACE))
    vertex, fields = f"vertex_{number}", f"fields_{number}"
    lines = [f"{opened}using {vertex} = {described.type};", f"static constexpr poplar::detail::Field {fields}[] = {{"]
    for member in described.members:
        lines += [_line_marker(member), f"{_field(vertex, member)},"]
    constructed = "true" if described.constructed else "false"
    arguments = f"{vertex}, {constructed}, {fields}, {len(described.members)}"
    return [
        *lines,
        '# 1 "<registration of vertices>"',
        "poplar::detail::Field{}};",  # an array has an element
        f"static void {_add(number)}(poplar::detail::Vertex* vertices, std::size_t& count) {{",
        f"  poplar::detail::addVertex<{arguments}>(vertices, count);",
        "}" + " }" * (len(described.scope) + 1),
    ]


def _field(vertex: str, member: Member) -> str:
    offset = f"__builtin_offsetof({vertex}, {member.name})"
    return f'poplar::detail::describeMember<{vertex}, decltype({vertex}::{member.name})>("{member.name}", {offset})'


def _line_marker(member: Member) -> str:
    file = member.file.replace("\\", "\\\\").replace('"', '\\"')
    return f'# {member.line} "{file}"'


def _export_lines(tables: int) -> list[str]:
    functions = [table_function(index) for index in range(tables)]
    return [
        *(f"std::size_t {name}(poplar::detail::Vertex*); std::size_t {name}_most();" for name in functions),
        'extern "C" __attribute__((visibility("default"))) const poplar::detail::VertexTable* poplar_vertex_table() {',
        f"  static const poplar::detail::VertexTable table = poplar::detail::makeTable<{', '.join(functions)}>(",
        f"      {' + '.join(f'{name}_most()' for name in functions)});",
        "  return &table;",
        "}",
    ]
