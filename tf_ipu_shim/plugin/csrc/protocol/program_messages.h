// The messages between the plugin and Python about a program. Python declares the same fields in
// `messages/program_pb2.py`, which documents each; a test compares the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "protocol/wire.h"

namespace tf_ipu_shim {

struct VariableMessage {
  static constexpr char kName[] = "tf_ipu_shim.Variable";
  std::string name;
  tensorflow::DataType type = tensorflow::DT_INVALID;
  tensorflow::TensorShapeProto shape;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "name", self.name);
    visit(2, "type", self.type);
    visit(3, "shape", self.shape);
  }
};

struct ArgumentMessage {
  static constexpr char kName[] = "tf_ipu_shim.Argument";
  tensorflow::DataType type = tensorflow::DT_INVALID;
  tensorflow::TensorShapeProto shape;
  std::optional<VariableMessage> variable;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "type", self.type);
    visit(2, "shape", self.shape);
    visit(3, "variable", self.variable);
  }
};

// Where an application is to be written, and what its arguments are.
struct ApplicationArgument {
  static constexpr char kName[] = "tf_ipu_shim.ApplicationArgument";
  std::string name;
  std::optional<tensorflow::TensorProto> value;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "name", self.name);
    visit(2, "value", self.value);
  }
};

struct ApplicationMessage {
  static constexpr char kName[] = "tf_ipu_shim.Application";
  std::string path;
  std::vector<ApplicationArgument> arguments;
  std::vector<tensorflow::TensorShapeProto> output_shapes;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "path", self.path);
    visit(2, "arguments", self.arguments);
    visit(3, "output_shapes", self.output_shapes);
  }
};

struct NodeInputs {
  static constexpr char kName[] = "tf_ipu_shim.NodeInputs";
  std::string node;
  std::vector<ArgumentMessage> inputs;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "node", self.node);
    visit(2, "inputs", self.inputs);
  }
};

struct PlainOpsMessage {
  static constexpr char kName[] = "tf_ipu_shim.PlainOps";
  tensorflow::GraphDef graph;
  std::vector<NodeInputs> nodes;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "graph", self.graph);
    visit(2, "nodes", self.nodes);
  }
};

struct ProgramRequest {
  static constexpr char kName[] = "tf_ipu_shim.ProgramRequest";
  std::string name, function;
  int32_t ordinal = 0;
  std::vector<ArgumentMessage> arguments;
  tensorflow::FunctionDefLibrary library;
  std::optional<ApplicationMessage> application;
  std::optional<PlainOpsMessage> plain_ops;
  bool single_op = false;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "name", self.name);
    visit(2, "function", self.function);
    visit(3, "ordinal", self.ordinal);
    visit(4, "arguments", self.arguments);
    visit(5, "library", self.library);
    visit(6, "application", self.application);
    visit(7, "plain_ops", self.plain_ops);
    visit(8, "single_op", self.single_op);
  }
};

struct ReplicaVariable {
  static constexpr char kName[] = "tf_ipu_shim.ReplicaVariable";
  int32_t argument = 0, chip = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "argument", self.argument);
    visit(2, "chip", self.chip);
  }
};

struct TransferEvents {
  static constexpr char kName[] = "tf_ipu_shim.TransferEvents";
  TraceEvent load_engine, host_to_device, device_to_host;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "load_engine", self.load_engine);
    visit(2, "host_to_device", self.host_to_device);
    visit(3, "device_to_host", self.device_to_host);
  }
};

struct ProgramEvents {
  static constexpr char kName[] = "tf_ipu_shim.ProgramEvents";
  TraceEvent compile_begin, compile_end, execute;
  std::optional<TransferEvents> transfers;
  std::vector<int32_t> variables, written;
  ByteString execution_report;
  int64_t report_every = 0;
  mutable int64_t executed = 0;  // counted, and guarded, by the trace of its device

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "compile_begin", self.compile_begin);
    visit(2, "compile_end", self.compile_end);
    visit(3, "execute", self.execute);
    visit(4, "transfers", self.transfers);
    visit(5, "variables", self.variables);
    visit(6, "written", self.written);
    visit(7, "execution_report", self.execution_report);
    visit(8, "report_every", self.report_every);
  }
};

struct CompilationMessage {
  static constexpr char kName[] = "tf_ipu_shim.Compilation";
  std::string module;
  std::vector<std::string> launches;
  bool progress_bar = false;
  std::optional<ProgramEvents> events;
  ByteString run_log;
  int64_t logged_runs = 0;
  std::string log_line;
  std::vector<std::string> variables;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "module", self.module);
    visit(2, "launches", self.launches);
    visit(3, "progress_bar", self.progress_bar);
    visit(4, "events", self.events);
    visit(5, "run_log", self.run_log);
    visit(6, "logged_runs", self.logged_runs);
    visit(7, "log_line", self.log_line);
    visit(8, "variables", self.variables);
  }
};

struct SentElements {
  static constexpr char kName[] = "tf_ipu_shim.SentElements";
  std::string feed_id;
  int64_t rows = 0;
  int32_t replicas = 0;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "feed_id", self.feed_id);
    visit(2, "rows", self.rows);
    visit(3, "replicas", self.replicas);
  }
};

struct ProgramAnswer {
  static constexpr char kName[] = "tf_ipu_shim.ProgramAnswer";
  tensorflow::NodeDef node;
  std::vector<tensorflow::FunctionDef> functions;
  std::vector<int32_t> variable_chips, inputs;
  std::vector<ReplicaVariable> replica_variables;
  std::string run_group;
  std::optional<CompilationMessage> compilation;
  std::string application_file;
  std::vector<SentElements> sent;
  std::vector<tensorflow::TensorShapeProto> result_shapes;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "node", self.node);
    visit(2, "functions", self.functions);
    visit(3, "variable_chips", self.variable_chips);
    visit(4, "inputs", self.inputs);
    visit(5, "replica_variables", self.replica_variables);
    visit(6, "run_group", self.run_group);
    visit(7, "compilation", self.compilation);
    visit(8, "application_file", self.application_file);
    visit(9, "sent", self.sent);
    visit(10, "result_shapes", self.result_shapes);
  }
};

struct NodeNames {
  static constexpr char kName[] = "tf_ipu_shim.NodeNames";
  std::vector<std::string> names;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "names", self.names);
  }
};

struct FrameMessage {
  static constexpr char kName[] = "tf_ipu_shim.Frame";
  ByteString file;
  int32_t line = 0;
  ByteString function;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "file", self.file);
    visit(2, "line", self.line);
    visit(3, "function", self.function);
  }
};

struct StackMessage {
  static constexpr char kName[] = "tf_ipu_shim.Stack";
  std::vector<FrameMessage> frames;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "frames", self.frames);
  }
};

// The fields of Graphcore's trace events that the plugin fills in. Protobuf reads what is appended to a serialised
// message as part of it, so that an event is completed by appending this.
struct CompileEndTime {
  static constexpr char kName[] = "xla.poplarplugin.CompileEnd";
  int64_t duration = 0;  // microseconds

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(3, "duration", self.duration);
  }
};

struct TraceEventTime {
  static constexpr char kName[] = "xla.poplarplugin.IpuTraceEvent";
  double timestamp = 0;  // seconds since the epoch
  std::optional<CompileEndTime> compile_end;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit(1, "timestamp", self.timestamp);
    visit(5, "compile_end", self.compile_end);
  }
};

}  // namespace tf_ipu_shim
