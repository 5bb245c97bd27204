"""Writes the C++ headers of the messages between Python and the plugin, from the schemas in `messages`.

    python -m tf_ipu_shim.plugin.message_headers      prints them

TensorFlow's wheels do not contain `protoc`; the headers declare structs whose fields `csrc/protocol/wire.h` reads and
writes.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping

from google.protobuf import descriptor_pb2

from tf_ipu_shim.messages import driver_pb2, schema

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    _Field.TYPE_BOOL: ("bool", " = false"),
    _Field.TYPE_INT32: ("int32_t", " = 0"),
    _Field.TYPE_INT64: ("int64_t", " = 0"),
    _Field.TYPE_DOUBLE: ("double", " = 0"),
    _Field.TYPE_STRING: ("std::string", ""),
    _Field.TYPE_BYTES: ("ByteString", ""),
}
_NAMED = {
    "tensorflow.DataType": ("tensorflow::DataType", " = tensorflow::DT_INVALID"),
    "tensorflow.TensorProto": ("std::optional<tensorflow::TensorProto>", ""),
    "xla.poplarplugin.IpuTraceEvent": ("TraceEvent", ""),
    "Use": ("Use", " = Use::kRun"),
}
# Whose names are other classes of the plugin.
_STRUCTS = {
    name: f"{name}Message"
    for name in ("Variable", "Argument", "Application", "PlainOps", "Compilation", "Frame", "Stack")
}
# The fields of Graphcore's trace events that the plugin fills in. Protobuf reads what is appended to a serialised
# message as part of it, so that an event is completed by appending this.
_PARTS = {
    "CompileEnd": ("CompileEndTime", ("duration",)),
    "IpuTraceEvent": ("TraceEventTime", ("timestamp", "compile_end")),
}
_PROTOS = "function graph node_def tensor tensor_shape types".split()


def write(directory: pathlib.Path) -> None:
    """Writes the headers to `directory`/protocol."""
    folder = directory / "protocol"
    folder.mkdir(parents=True, exist_ok=True)
    for name, header in headers().items():
        (folder / name).write_text(header)


def headers() -> dict[str, str]:
    """Returns the text of each header by file name.

    Example:
        >>> "struct SeedOrder {" in headers()["driver_messages.h"]
        True
    """
    protos = [f"tensorflow/core/framework/{name}.pb.h" for name in _PROTOS]
    events = schema.parse("trace").message_type
    parts = [_part(message, _PARTS[message.name][1]) for message in events if message.name in _PARTS]
    structs = {**_STRUCTS, **{name: struct for name, (struct, _) in _PARTS.items()}}
    parsed = [list(schema.parse(name).message_type) for name in ("program", "driver")]
    program, driver = (_structs(messages, "tf_ipu_shim", structs) for messages in parsed)
    program += _structs(parts, "xla.poplarplugin", structs)
    return {
        "program_messages.h": _header([*protos, "protocol/wire.h"], program),
        "driver_messages.h": _header(["protocol/device_use.h", "protocol/driver_call.h"], [*driver, *_calls()]),
    }


def _part(message: descriptor_pb2.DescriptorProto, fields: tuple[str, ...]) -> descriptor_pb2.DescriptorProto:
    kept_fields = [field for field in message.field if field.name in fields]
    return descriptor_pb2.DescriptorProto(name=message.name, field=kept_fields)


def _header(includes: list[str], parts: list[str]) -> str:
    lines = "".join(f'#include "{name}"\n' for name in includes)
    body = "\n".join(parts)
    return (
        "// Generated from `messages` by `plugin/message_headers.py`.\n#pragma once\n\n"
        f"#include <cstdint>\n#include <optional>\n#include <string>\n#include <vector>\n\n{lines}\n"
        f"namespace tf_ipu_shim {{\n\n{body}\n}}  // namespace tf_ipu_shim\n"
    )


def _structs(messages: list[descriptor_pb2.DescriptorProto], package: str, structs: Mapping[str, str]) -> list[str]:
    """Returns the structs of messages, each after the structs that it contains."""
    message_of = {message.name: message for message in messages}
    done: dict[str, str] = {}

    def add(message: descriptor_pb2.DescriptorProto) -> None:
        for field in message.field:
            if field.type_name in message_of and field.type_name not in done:
                add(message_of[field.type_name])
        done.setdefault(message.name, _struct(message, package, structs))

    for message in messages:
        add(message)
    return list(done.values())


def _struct(message: descriptor_pb2.DescriptorProto, package: str, structs: Mapping[str, str]) -> str:
    members = "".join(f"  {_member(field, structs)}\n" for field in message.field)
    visits = "".join(f'    visit({field.number}, "{field.name}", self.{field.name});\n' for field in message.field)
    arguments = "Self& self, Visitor& visit" if message.field else "Self&, Visitor&"
    return (
        f"struct {structs.get(message.name, message.name)} {{\n"
        f'  static constexpr char kName[] = "{package}.{message.name}";\n{members}\n'
        f"  template <class Self, class Visitor>\n  static void Fields({arguments}) {{\n{visits}  }}\n}};\n"
    )


def _member(field: descriptor_pb2.FieldDescriptorProto, structs: Mapping[str, str]) -> str:
    repeated = field.label == _Field.LABEL_REPEATED
    if field.type in _SCALARS:
        kind, default = _SCALARS[field.type]
    elif field.type_name in _NAMED:
        kind, default = _NAMED[field.type_name]
    else:
        is_message = "." not in field.type_name
        kind = structs.get(field.type_name, field.type_name).replace(".", "::")
        kind, default = (f"std::optional<{kind}>" if is_message and not repeated else kind), ""
    return f"std::vector<{kind}> {field.name};" if repeated else f"{kind} {field.name}{default};"


def _calls() -> Iterator[str]:
    for name, (request, answer) in driver_pb2.CALLS.items():
        struct = name.title().replace("_", "")
        handler = f'  static constexpr char kHandler[] = "{name}";\n'
        yield f"struct {struct}Call : DriverCall<{request}, {answer}> {{\n{handler}}};\n"


if __name__ == "__main__":
    print(*headers().values(), sep="\n")
