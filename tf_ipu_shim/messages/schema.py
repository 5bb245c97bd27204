"""Creates protobuf message classes from a schema written as text.

The messages have to work with every protobuf runtime TensorFlow brings (4.25 with 2.15, 7.x with 2.21). Code that
`protoc` generates is tied to a runtime, and the installed package has no `protoc`. So the schema is read here, once,
into the descriptor that `protoc` would have made. It reads the part of proto3 that the schemas use: messages, enums,
`oneof`, `repeated`, and fields of scalar, message or enum type.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Union

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

_Field = descriptor_pb2.FieldDescriptorProto
_Scope = Union[descriptor_pb2.FileDescriptorProto, descriptor_pb2.DescriptorProto]
_SCALARS: Mapping[str, int] = {
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
    "float": _Field.TYPE_FLOAT,
    "double": _Field.TYPE_DOUBLE,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
}
_STATEMENT = re.compile(r"\s*(?:(?P<open>[^;{}]+)\{|(?P<plain>[^;{}]+);|(?P<close>\}))")


_loading = threading.RLock()  # loading one schema may load those that it imports


def once(contents: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Returns a function that loads a schema at its first call, thread-safely.

    Example:
        >>> contents = once(lambda: load("doc/line.proto", "doc", "message Line { int32 x = 1; }"))
        >>> contents() is contents()
        True
    """
    cached = functools.cache(contents)

    @functools.wraps(contents)
    def loaded() -> dict[str, Any]:
        with _loading:  # TensorFlow lowers two programs of a step at the same time
            return cached()

    return loaded


def load(name: str, package: str, text: str, imports: tuple[str, ...] = ()) -> dict[str, Any]:
    """Registers a schema and returns the contents of a generated module.

    Example:
        >>> load("doc/point.proto", "doc", "message Point { int32 x = 1; }")["Point"](x=3).x
        3
    """
    pool = descriptor_pool.Default()
    enums: set[str] = set()
    for imported in map(pool.FindFileByName, imports):
        for enum in imported.enum_types_by_name:
            enums |= {enum, f"{imported.package}.{enum}"}
    pool.AddSerializedFile(parse(name, package, text, imports, enums).SerializeToString())
    descriptor = pool.FindFileByName(name)
    contents: dict[str, Any] = {"DESCRIPTOR": descriptor}
    for key, message in descriptor.message_types_by_name.items():
        contents[key] = message_factory.GetMessageClass(message)
    for key, enum in descriptor.enum_types_by_name.items():
        contents[key] = enum_type_wrapper.EnumTypeWrapper(enum)
        contents.update((value.name, value.number) for value in enum.values)
    return contents


def parse(
    name: str, package: str, text: str, imports: tuple[str, ...] = (), enums: set[str] | None = None
) -> descriptor_pb2.FileDescriptorProto:
    """Parses a schema without registering it; `enums` has the names of imported ones.

    Example:
        >>> parse("doc/point.proto", "doc", "message Point { int32 x = 1; }").message_type[0].field[0].name
        'x'
    """
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3", dependency=imports)
    text = re.sub(r"//[^\n]*", "", text)
    enums = (enums or set()) | set(re.findall(r"\benum\s+(\w+)", text))
    scopes: list[Any] = [file]
    position = 0
    while text[position:].strip():
        match = _STATEMENT.match(text, position)
        if match is None:
            raise ValueError(f"{file.name}: cannot read {text[position : position + 40]!r}.")
        position = match.end()
        if match["close"]:
            scopes.pop()
        elif match["open"]:
            scopes.append(_open(scopes[-1], *match["open"].split()))
        else:
            _statement(scopes, match["plain"].split(), enums)
    return file


def _open(scope: Any, kind: str, name: str) -> Any:
    if kind == "oneof":
        scope.oneof_decl.add(name=name)
        return ("oneof", scope, len(scope.oneof_decl) - 1)
    at_top = isinstance(scope, descriptor_pb2.FileDescriptorProto)
    if kind == "enum":
        return scope.enum_type.add(name=name)
    return scope.message_type.add(name=name) if at_top else scope.nested_type.add(name=name)


def _statement(scopes: list[Any], words: list[str], enums: set[str]) -> None:
    scope = scopes[-1]
    if isinstance(scope, descriptor_pb2.EnumDescriptorProto):
        scope.value.add(name=words[0], number=int(words[2]))
        return
    oneof = None
    if isinstance(scope, tuple):
        _, scope, oneof = scope
    repeated = words[0] == "repeated"
    kind, name, _, field_number = words[repeated:]
    field = scope.field.add(
        name=name, number=int(field_number), label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    )
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_ENUM if kind in enums else _Field.TYPE_MESSAGE
        field.type_name = kind
    if oneof is not None:
        field.oneof_index = oneof
