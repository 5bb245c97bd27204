// Answers Python's queries about a graph: ops without a kernel, ops that oneDNN runs, and the Python stack of an op.
#include <string>

#include "device/device.h"
#include "programs/lowering_call.h"
#include "kernels/one_dnn.h"
#include "kernels/op_programs.h"
#include "protocol/program_messages.h"
#include "kernels/xla_kernels.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"

namespace tf_ipu_shim {
namespace {

// The serialised message, `*size` bytes that live until the next call on the same thread.
template <class Message>
const char* StoreMessage(const Message& message, int64_t* size) {
  thread_local std::string kept;
  kept.clear();
  if (!WriteMessage(message, &kept).ok()) kept.clear();
  *size = static_cast<int64_t>(kept.size());
  return kept.c_str();
}

bool RunsOnIpu(const tensorflow::NodeDef& node) {
  return !RunsAsProgram(node) &&
         tensorflow::FindKernelDef(tensorflow::DeviceType(kDeviceType), node, nullptr, nullptr).ok();
}

bool HasOwnKernel(const tensorflow::NodeDef& node) { return !UsesOneDnnKernel(node); }

// Finds the nodes for which a predicate is false.
const char* FindOpsWithoutKernel(bool (*has_kernel)(const tensorflow::NodeDef&), const char* graph, int64_t size,
                                 int64_t* answer_size) {
  tensorflow::GraphDef nodes;
  NodeNames found;
  if (nodes.ParseFromArray(graph, static_cast<int>(size))) {
    for (const tensorflow::NodeDef& node : nodes.node()) {
      if (!has_kernel(node)) found.names.push_back(node.name());
    }
  }
  return StoreMessage(found, answer_size);
}

}  // namespace
}  // namespace tf_ipu_shim

extern "C" {

// The nodes that XLA has no kernel for, as NodeNames. `graph` is a serialised GraphDef.
const char* ipu_uncompilable(const char* graph, int64_t size, int64_t* answer_size) {
  return tf_ipu_shim::FindOpsWithoutKernel(tf_ipu_shim::XlaHasKernel, graph, size, answer_size);
}

// The nodes that cannot run one by one on an IPU, as NodeNames.
const char* ipu_without_kernel(const char* graph, int64_t size, int64_t* answer_size) {
  return tf_ipu_shim::FindOpsWithoutKernel(tf_ipu_shim::RunsOnIpu, graph, size, answer_size);
}

// The nodes that run by oneDNN's kernels one by one, as NodeNames.
const char* ipu_by_one_dnn(const char* graph, int64_t size, int64_t* answer_size) {
  return tf_ipu_shim::FindOpsWithoutKernel(tf_ipu_shim::HasOwnKernel, graph, size, answer_size);
}

// The Python stack that made a node of a function, as a Stack; empty where TensorFlow keeps none. Touches Python objects:
// the caller holds the GIL.
const char* ipu_stack_of(tf_ipu_shim::LoweringCall* call, const char* function, const char* node,
                         int64_t* answer_size) {
  tf_ipu_shim::StackMessage stack;
  const auto* traces = call->runtime->GetFunctionLibraryDefinition()->GetStackTraces(function);
  if (traces != nullptr) {
    const auto found = traces->find(node);
    if (found != traces->end() && found->second != nullptr) {
      for (const auto& frame : found->second->ToFrames()) {
        stack.frames.push_back({{frame.file_name}, frame.line_number, {frame.function_name}});
      }
    }
  }
  return tf_ipu_shim::StoreMessage(stack, answer_size);
}

}  // extern "C"
