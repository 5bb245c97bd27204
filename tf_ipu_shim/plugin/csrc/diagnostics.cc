// What error messages need to know: which ops XLA cannot compile, and where in the user's script an op was made.
#include <string>

#include "lowering_call.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"

namespace tensorflow {

// Exported by TensorFlow, whose own header for it needs headers that the wheel leaves out: the one static function of
// the class that is called here. Checked on 2.15.1 and 2.21.0.
class XlaOpRegistry {
 public:
  static void RegisterCompilationKernels();
};

}  // namespace tensorflow

namespace tf_ipu_shim {
namespace {

const char* KeepDiagnostic(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace
}  // namespace tf_ipu_shim

extern "C" {

// The names of the nodes that XLA has no kernel for, a line each. `graph` is a serialised GraphDef.
const char* ipu_uncompilable(const char* graph, int64_t size) {
  tensorflow::XlaOpRegistry::RegisterCompilationKernels();
  tensorflow::GraphDef nodes;
  std::string names;
  if (nodes.ParseFromArray(graph, static_cast<int>(size))) {
    for (const tensorflow::NodeDef& node : nodes.node()) {
      const bool found =
          tensorflow::FindKernelDef(tensorflow::DeviceType("XLA_CPU_JIT"), node, nullptr, nullptr).ok();
      if (!found) names += node.name() + "\n";
    }
  }
  return tf_ipu_shim::KeepDiagnostic(std::move(names));
}

// The Python stack that made a node of a function, outermost frame first, a line `file<TAB>number<TAB>function` each;
// empty where TensorFlow keeps none. Touches Python objects: the caller holds the GIL.
const char* ipu_stack_of(tf_ipu_shim::LoweringCall* call, const char* function, const char* node) {
  std::string text;
  const auto* traces = call->runtime->GetFunctionLibraryDefinition()->GetStackTraces(function);
  if (traces != nullptr) {
    const auto found = traces->find(node);
    if (found != traces->end() && found->second != nullptr) {
      for (const auto& frame : found->second->ToFrames()) {
        text += frame.file_name + "\t" + std::to_string(frame.line_number) + "\t" + frame.function_name + "\n";
      }
    }
  }
  return tf_ipu_shim::KeepDiagnostic(std::move(text));
}

}  // extern "C"
