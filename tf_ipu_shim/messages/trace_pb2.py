"""Messages of `tensorflow.compiler.plugin.poplar.driver.trace_pb2`: what happened on the device, event by event."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema as _schema

FILE = "tensorflow/compiler/plugin/poplar/driver/trace.proto"

globals().update(
    _schema.load(
        FILE,
        "xla.poplarplugin",
        """
        message CompileBegin {
          string module_name = 1;
          string cluster_info = 2;
        }

        message CompileEnd {
          string module_name = 1;
          string compilation_report = 2;
          int64 duration = 3;              // microseconds
          string tensor_map = 4;           // JSON: which tensor lies on which tiles
          string instruction_info = 5;     // JSON
          string poplar_graph = 6;
        }

        message DataTransfer {
          string data_transfer = 1;        // JSON: "tensors", each with "name", "id" and "size" in bytes
        }

        message LoadEngine {
          string module_name = 1;
        }

        message Execute {
          string module_name = 1;
          string execution_report = 2;
          string tile_report = 3;
          string activity_trace = 4;
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
        """,
    )
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no message, enum or enum value {name!r}.")
