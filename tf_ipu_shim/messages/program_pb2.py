"""The plugin's request to lower a program, and Python's answer with the program to run.

The plugin's C++ structs are generated from this schema when it is built (`plugin.message_headers`).
A field that one side does not know is an error, not left out.

The messages hold some of TensorFlow's own, so that they are made when one is first asked for.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema, trace_pb2

FILE = "tf_ipu_shim/messages/program.proto"

TEXT = """
message Argument {
  tensorflow.DataType type = 1;
  tensorflow.TensorShapeProto shape = 2;   // of a resource: no axes
  Variable variable = 3;                   // of a resource alone
}

message Variable {
  string name = 1;
  tensorflow.DataType type = 2;            // DT_INVALID where it is not known
  tensorflow.TensorShapeProto shape = 3;
}

// A call of a traced function, with what is known of its arguments when it first runs.
message ProgramRequest {
  string name = 1;                         // of the op that calls it
  string function = 2;
  int32 ordinal = 3;                       // of the TensorFlow device
  repeated Argument arguments = 4;
  tensorflow.FunctionDefLibrary library = 5;  // all functions that it reaches
  Application application = 6;             // where it is to be written to a file, not run
  PlainOps plain_ops = 7;                  // where there is no call, and nothing but a profile is to be made
  bool single_op = 8;                      // whether the function is one op of the graph
}

// What a step of a session has run on a device op by op.
message PlainOps {
  tensorflow.GraphDef graph = 1;           // all its ops on the device, and the functions that these reach
  repeated NodeInputs nodes = 2;
}

// What an op of a step was given.
message NodeInputs {
  string node = 1;
  repeated Argument inputs = 2;            // in order; DT_INVALID for what did not come
}

// Where an application is to be written, and what its arguments are.
message Application {
  string path = 1;                         // empty for a new temporary file
  repeated ApplicationArgument arguments = 2;
  repeated tensorflow.TensorShapeProto output_shapes = 3;
}

message ApplicationArgument {
  string name = 1;
  tensorflow.TensorProto value = 2;        // of one that becomes part of the file
}

// A replica's own copy of a variable.
message ReplicaVariable {
  int32 argument = 1;                      // the program's, whose variable it is
  int32 chip = 2;                          // where the copy lives
}

// Trace events that lack nothing but the time.
message ProgramEvents {
  xla.poplarplugin.IpuTraceEvent compile_begin = 1;
  xla.poplarplugin.IpuTraceEvent compile_end = 2;
  xla.poplarplugin.IpuTraceEvent execute = 3;
  TransferEvents transfers = 4;            // where transfers are wanted
  repeated int32 variables = 5;            // arguments that stay on the device between runs
  repeated int32 written = 6;              // those of them that the program writes
  bytes execution_report = 7;              // an IpuTraceEvent with nothing but the report of a run; empty for none
  int64 report_every = 8;                  // runs for each report; 0 for one of the first run alone
}

message TransferEvents {
  xla.poplarplugin.IpuTraceEvent load_engine = 1;
  xla.poplarplugin.IpuTraceEvent host_to_device = 2;
  xla.poplarplugin.IpuTraceEvent device_to_host = 3;
}

message Compilation {
  string module = 1;                       // the program's name in events and on the progress bar
  repeated string launches = 2;            // functions of its XLA programs
  bool progress_bar = 3;                   // whether one is shown
  ProgramEvents events = 4;                // where they are wanted
  bytes run_log = 5;                       // file that gets a line for each run; empty for none
  int64 logged_runs = 6;                   // how many runs get one, at most
  string log_line = 7;                     // of the driver's log when XLA has compiled it, without time; or empty
  repeated string variables = 8;           // of plain ops: what each argument is called that is a variable; else empty
}

// What a run would send to an outfeed.
message SentElements {
  string feed_id = 1;
  int64 rows = 2;                          // iterations in which something is sent
  int32 replicas = 3;
}

// What a program runs as.
message ProgramAnswer {
  tensorflow.NodeDef node = 1;             // the op to run instead of the call; its inputs are those below
  repeated tensorflow.FunctionDef functions = 2;  // that it needs and the request has not
  repeated int32 variable_chips = 3;       // for each argument the chip of that variable; -1 for no variable
  repeated int32 inputs = 4;               // for each input of `node` the argument that it is
  repeated ReplicaVariable replica_variables = 5;  // what follows as further inputs of `node`
  string run_group = 6;                    // names the runs of a program with replicas or feeds; else empty
  Compilation compilation = 7;             // where Graphcore would compile an engine for it
  string application_file = 8;             // of an application alone, which has nothing else here
  repeated SentElements sent = 9;          // where programs are compiled and not run
  repeated tensorflow.TensorShapeProto result_shapes = 10;  // likewise
  string user_op_target = 11;              // what users' Poplar ops of it are built for; else empty
}

// What the lowering asks of the plugin while a program waits for its answer.
message NodeNames {
  repeated string names = 1;
}

message Stack {
  repeated Frame frames = 1;               // outermost first
}

message Frame {
  bytes file = 1;                          // a path as the system has it
  int32 line = 2;
  bytes function = 3;
}
"""


@schema.once
def _contents() -> dict[str, Any]:
    from tf_ipu_shim.tf_private.protos import (
        function_pb2,
        graph_pb2,
        node_def_pb2,
        tensor_pb2,
        tensor_shape_pb2,
        types_pb2,
    )

    files = (function_pb2, graph_pb2, node_def_pb2, tensor_pb2, tensor_shape_pb2, types_pb2)
    return schema.load(FILE, "tf_ipu_shim", TEXT, (*(file.DESCRIPTOR.name for file in files), trace_pb2.FILE))


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in _contents():
        raise AttributeError(f"module {__name__!r} has no message {name!r}.")
    return _contents()[name]
