"""The content of an executable-cache file: `runtime.executable_cache` and `docs/how_to/run/executable_cache.md`."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import program_pb2, schema

FILE = "tf_ipu_shim/messages/cached_program.proto"

_TEXT = """
message CachedProgram {
  bytes key = 1;                           // the whole key, which the file's name only begins
  repeated string functions = 2;           // names of the request's functions, the entry first
  repeated string feeds = 3;               // ids of its feeds
  ProgramAnswer answer = 4;                // without its compilation
  bool needs_engine = 5;
  repeated string launches = 6;            // functions of its XLA programs
  string plan = 7;                         // its memory plan as JSON; empty where there is none
  repeated bytes user_op_calls = 8;        // calls of its users' Poplar ops, in the order in which they are built
}
"""


@schema.once
def _contents() -> dict[str, Any]:
    return schema.load(FILE, "tf_ipu_shim", _TEXT, (program_pb2.DESCRIPTOR.name,))


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in _contents():
        raise AttributeError(f"module {__name__!r} has no message {name!r}.")
    return _contents()[name]
