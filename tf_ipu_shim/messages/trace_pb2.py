"""Messages of Graphcore's `trace_pb2`: trace events of the device.

Strings are bytes, which scripts decode.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema as _schema

FILE = "tensorflow/compiler/plugin/poplar/driver/trace.proto"

TEXT = """
message CompileBegin {
  bytes module_name = 1;
  bytes cluster_info = 2;
}

message CompileEnd {
  bytes module_name = 1;
  bytes compilation_report = 2;
  int64 duration = 3;              // microseconds
  bytes tensor_map = 4;           // JSON: which tensor lies on which tiles
  bytes instruction_info = 5;     // JSON
  bytes poplar_graph = 6;
}

message DataTransfer {
  bytes data_transfer = 1;        // JSON: "tensors", each with "name", "id" and "size" in bytes
}

message LoadEngine {
  bytes module_name = 1;
}

message Execute {
  bytes module_name = 1;
  bytes execution_report = 2;
  bytes tile_report = 3;
  bytes activity_trace = 4;
}

message IpuTraceEvent {
  enum Type {
    COMPILE_BEGIN = 0;
    COMPILE_END = 1;
    HOST_TO_DEVICE_TRANSFER = 2;
    DEVICE_TO_HOST_TRANSFER = 3;
    LOAD_ENGINE = 4;
    EXECUTE = 5;
  }
  double timestamp = 1;            // seconds since the epoch
  int32 ordinal = 2;               // the TensorFlow device
  Type type = 3;
  oneof event {
    CompileBegin compile_begin = 4;
    CompileEnd compile_end = 5;
    DataTransfer data_transfer = 6;
    LoadEngine load_engine = 7;
    Execute execute = 8;
  }
}
"""

globals().update(_schema.load(FILE, "xla.poplarplugin", TEXT))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no message, enum or enum value {name!r}.")
