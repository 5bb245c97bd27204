"""Messages of Graphcore's `poplar_executable_pb2`: a compiled application.

`docs/how_to/deploy/embedded_runtime.md` says what the fields mean and how they are in a file. The messages hold some of
TensorFlow's own, so that they are made when one is first asked for.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema

FILE = "tensorflow/compiler/plugin/poplar/driver/poplar_executable.proto"

_TEXT = """
message TensorInfo {
  string name = 1;
  tensorflow.DataType data_type = 2;
  tensorflow.TensorShapeProto shape = 3;
}

// A tensor of a feed.
message StreamedTensorInfo {
  string name = 1;
  tensorflow.DataType data_type = 2;
  tensorflow.TensorShapeProto shape = 3;
  int32 feed = 4;                          // which of the application's infeeds, or outfeeds
}

message EmbeddedRuntimeSignature {
  repeated TensorInfo inputs = 1;          // handed over when the engine starts
  repeated StreamedTensorInfo streamed_inputs = 2;
  repeated TensorInfo outputs = 3;         // results of a run, and variables that it writes
  repeated StreamedTensorInfo streamed_outputs = 4;
}

message EmbeddedRuntimeConfig {
  EmbeddedRuntimeSignature signature = 1;
  int32 num_ipus = 2;
  int32 replicas = 3;
}

// An argument of the entry function.
message ApplicationArgument {
  enum Kind {
    INPUT = 0;                             // of the signature, at `index`
    WEIGHTS = 1;                           // the file's member `weights/<index>`
    INFEED = 2;                            // the iterator of infeed `index`
  }
  Kind kind = 1;
  int32 index = 2;
  bool variable = 3;                       // a variable with that value; else the value itself
  TensorInfo tensor = 4;
}

message ApplicationFeed {
  string id = 1;                           // as the functions name it; empty for an iterator that is an argument
}

message ApplicationProgram {
  string name = 1;
  string function = 2;                     // the entry function
  tensorflow.FunctionDefLibrary library = 3;
  repeated ApplicationArgument arguments = 4;
  repeated tensorflow.DataType output_types = 5;
  repeated ApplicationFeed infeeds = 6;
  repeated ApplicationFeed outfeeds = 7;
}

message PoplarExecutableProto {
  EmbeddedRuntimeConfig embedded_runtime_config = 1;
  int32 format = 2;
  string written_by = 3;                   // this package's version
  string tensorflow_version = 4;
  bytes configuration = 5;                 // a serialised IpuOptions
  ApplicationProgram program = 6;
}
"""


@schema.once
def _contents() -> dict[str, Any]:
    from tf_ipu_shim.tf_private.protos import function_pb2, tensor_shape_pb2, types_pb2

    files = (function_pb2, tensor_shape_pb2, types_pb2)
    return schema.load(FILE, "xla.poplarplugin", _TEXT, tuple(file.DESCRIPTOR.name for file in files))


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in _contents():
        raise AttributeError(f"module {__name__!r} has no message {name!r}.")
    return _contents()[name]
