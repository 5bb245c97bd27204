// Recognises XLA's compile errors and asks Python for the message with the script's line.
#include "launches/compile_errors.h"

#include <string>

#include "protocol/driver_messages.h"
#include "programs/lowering_call.h"
#include "process/python_call.h"

namespace tf_ipu_shim {
namespace {

using tensorflow::Status;

// Words that only TensorFlow's bridge to XLA uses for a function that it cannot convert. Checked on 2.15.1 and 2.21.0.
bool IsCompilerError(const Status& status) {
  for (const char* said : {"tf2xla conversion failed", "dummy_file_name", "TF_DUMP_GRAPH_PREFIX"}) {
    if (status.message().find(said) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void ExplainCompileError(tensorflow::OpKernelContext* context) {
  const Status& failed = context->status();
  if (failed.ok() || !IsCompilerError(failed)) return;
  LoweringCall call{context->function_library()};
  CompileError error;
  error.call = reinterpret_cast<int64_t>(&call);
  error.text = std::string(failed.message());
  CompileErrorText answer;
  if (!CallPython<ExplainCompileErrorCall>(error, &answer).ok()) return;  // the compiler's own words are better than none
  // A context keeps its first error.
  const_cast<Status&>(failed) = Status(static_cast<absl::StatusCode>(failed.code()), answer.text);
}

}  // namespace tf_ipu_shim
