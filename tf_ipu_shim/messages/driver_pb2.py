"""Requests of the plugin's ops to Python's driver, and their answers (see `runtime.driver`).

The plugin's C++ structs are generated from this schema when it is built (`plugin.message_headers`).
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema as _schema

FILE = "tf_ipu_shim/messages/driver.proto"

TEXT = """
message Nothing {}

message DeviceQuestion {
  int32 ordinal = 1;                       // of the TensorFlow device
}

message UseQuestion {
  int32 ordinal = 1;                       // of the TensorFlow device
  bool attach = 2;                         // whether it is to run what needs IPUs
}

message DeviceUse {
  enum Use {
    RUNS = 0;                              // attached
    GIVES_ZEROS = 1;                       // PRE_COMPILE: programs are compiled, and results are zero
    COMPILES_ONLY = 2;                     // NEVER: programs are compiled, and running one is an error
    UNATTACHED = 3;                        // ON_DEMAND: attaches when it is to run what needs IPUs
  }
  Use use = 1;
}

message DeviceSize {
  int64 ipus = 1;
}

message SeedOrder {
  int32 ordinal = 1;                       // of the TensorFlow device
  int64 seed = 2;
  bool identical_replicas = 3;             // whether all replicas draw the same numbers
}

message SyntheticQuestion {
  int64 category = 1;                      // a SyntheticDataCategory of Graphcore's
}

message YesOrNo {
  bool yes = 1;
}

message ConfigureOrder {
  bytes options = 1;                       // what the script gave: a serialised IpuOptions, if it is right
}

message Configurations {
  repeated bytes options = 1;              // for each TensorFlow device its serialised IpuOptions
}

message ApplicationStart {
  string engine = 1;                       // its name
  string file = 2;
  int64 inputs = 3;                        // how many it is started with
}

message ApplicationTensor {
  int32 type = 1;                          // a DataType
  repeated int64 shape = 2;
  int32 feed = 3;                          // the infeed or outfeed that it is part of
}

message ApplicationStarted {
  repeated ApplicationTensor infeeds = 1;  // what a call hands over
  repeated ApplicationTensor outfeeds = 2; // what it gets
  repeated string outfeed_ids = 3;
  int32 replicas = 4;
}

message ReplicaValues {
  string name = 1;                         // of the collective, the same in all instances
  int32 type = 2;                          // a DataType
  repeated int64 shape = 3;                // [replicas of this instance, ...]
  bytes values = 4;                        // by replica
}

message AllReplicaValues {
  bytes values = 1;                        // of the replicas of all instances, in their order
}

message CompileError {
  int64 call = 1;                          // what `plugin.library.Call` takes, while this is answered
  string text = 2;                         // what it says
}

message CompileErrorText {
  string text = 1;
}
"""

CALLS = {
    "attach": ("UseQuestion", "DeviceUse"),
    "configure": ("ConfigureOrder", "Nothing"),
    "reset_devices": ("Nothing", "Nothing"),
    "reset_seed": ("SeedOrder", "Nothing"),
    "gather_instances": ("ReplicaValues", "AllReplicaValues"),
    "model_used": ("Nothing", "YesOrNo"),
    "configuration": ("Nothing", "Configurations"),
    "num_ipus": ("DeviceQuestion", "DeviceSize"),
    "start_application": ("ApplicationStart", "ApplicationStarted"),
    "explain_compile_error": ("CompileError", "CompileErrorText"),
    "synthetic_data": ("SyntheticQuestion", "YesOrNo"),
}
"""Request and answer of each call, by the name of its handler."""

globals().update(_schema.load(FILE, "tf_ipu_shim", TEXT))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no message {name!r}.")
