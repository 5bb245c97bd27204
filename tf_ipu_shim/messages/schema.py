"""Creates protobuf message classes from the schemas, `*.proto`, in this folder.

The messages have to work with every protobuf runtime that TensorFlow installs (4.25 with 2.15, 7.x with 2.21). Code
that `protoc` generates is tied to a runtime, and the installed package has no `protoc`. So a schema is read here, once,
into the descriptor that `protoc` would have made. It reads the part of proto3 that the schemas use: messages, enums,
`oneof`, `repeated`, and fields of scalar, message or enum type.
"""

from __future__ import annotations

import functools
import pathlib
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
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
_DIRECTORY = pathlib.Path(__file__).parent
_FOLDERS = {
    "xla.poplarplugin": "tensorflow/compiler/plugin/poplar/driver",
    "tf_ipu_shim": "tf_ipu_shim/messages",
}
"""By package, the folder in the path by which a schema is registered and imported."""

_loading = threading.RLock()  # TensorFlow lowers two programs of a step at the same time


def getter(module: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module `*_pb2`, which loads its schema at first use.

    Example:
        >>> getter("option_flag_pb2")("PoplarOptionFlag")(option="a").option
        'a'
    """

    def __getattr__(name: str) -> Any:
        if name.startswith("_") or name not in contents(module):
            raise AttributeError(f"module {module!r} has no message, enum or enum value {name!r}.")
        return contents(module)[name]

    return __getattr__


def contents(module: str) -> dict[str, Any]:
    """Returns the contents that `protoc` would generate for a module `*_pb2`, from the schema of that name."""
    with _loading:
        return _load(module.rpartition(".")[2].removesuffix("_pb2"))


@functools.cache
def _load(name: str) -> dict[str, Any]:
    """Registers a schema and its imports, and returns its classes and constants."""
    imported = [(file.package, enum) for file in _imports(parse(name)) for enum in file.enum_types_by_name]
    file = parse(name, [spelling for package, enum in imported for spelling in (enum, f"{package}.{enum}")])
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    descriptor = pool.FindFileByName(file.name)
    contents: dict[str, Any] = {"DESCRIPTOR": descriptor}
    for key, message in descriptor.message_types_by_name.items():
        contents[key] = message_factory.GetMessageClass(message)
    for key, enum in descriptor.enum_types_by_name.items():
        contents[key] = enum_type_wrapper.EnumTypeWrapper(enum)
        contents.update((value.name, value.number) for value in enum.values)
    return contents


def _imports(file: descriptor_pb2.FileDescriptorProto) -> Iterator[Any]:
    """Yields the descriptors of the schemas that one imports: of this folder, or of TensorFlow."""
    for path in file.dependency:
        folder, _, name = path.removesuffix(".proto").rpartition("/")
        if folder in _FOLDERS.values():
            yield _load(name)["DESCRIPTOR"]
        else:
            from tf_ipu_shim.tf_private import protos

            yield getattr(protos, f"{name}_pb2").DESCRIPTOR


def parse(name: str, enums: Collection[str] = ()) -> descriptor_pb2.FileDescriptorProto:
    """Parses a schema without registering it; `enums` has the names of imported ones.

    Example:
        >>> parse("option_flag").message_type[0].field[0].name
        'option'
    """
    text = re.sub(r"//[^\n]*", "", (_DIRECTORY / f"{name}.proto").read_text(encoding="ascii"))
    file = descriptor_pb2.FileDescriptorProto(dependency=re.findall(r'^import "(.*)";', text, re.MULTILINE))
    enums = {*enums, *re.findall(r"\benum\s+(\w+)", text)}
    scopes: list[Any] = [file]
    position = 0
    while text[position:].strip():
        match = _STATEMENT.match(text, position)
        if match is None:
            raise ValueError(
                f"{name}.proto: cannot read {text[position : position + 40]!r}; expected a statement "
                "of proto3. Correct the file."
            )
        position = match.end()
        if match["close"]:
            scopes.pop()
        elif match["open"]:
            scopes.append(_open(scopes[-1], *match["open"].split()))
        elif len(scopes) > 1:
            _statement(scopes, match["plain"].split(), enums)
    file.syntax, file.package = re.findall(r'^syntax = "(\w+)";\s+package ([\w.]+);', text)[0]
    file.name = f"{_FOLDERS[file.package]}/{name}.proto"
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
