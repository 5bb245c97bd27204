// Calls Python's lowering and adds the functions that it returns to the library.
#include "programs/lowering_call.h"

#include "process/asynchronous.h"
#include "process/interrupts.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using tensorflow::Status;

std::atomic<LowerFunction> lower_function{nullptr};

template <typename Functions>
Status AddAll(tensorflow::FunctionLibraryRuntime* runtime, const Functions& functions) {
  tensorflow::FunctionLibraryDefinition* const library = LibraryOf(runtime);
  // Names are used once in a process, so a known name means the same function; another function of that name is an
  // error.
  for (const tensorflow::FunctionDef& function : functions) TF_RETURN_IF_ERROR(library->AddFunctionDef(function));
  return tensorflow::OkStatus();
}

}  // namespace

std::atomic<int64_t> configuration_epoch{1};

void SetLowerFunction(LowerFunction function) { lower_function = function; }
void NewEpoch() { ++configuration_epoch; }

Status Lower(tensorflow::FunctionLibraryRuntime* runtime, const ProgramRequest& request, ProgramAnswer* answer,
             bool* in_eager_context) {
  const LowerFunction function = lower_function;
  if (function == nullptr) {
    return tensorflow::errors::FailedPrecondition(
        "An IPU program needs the Python package tf_ipu_shim, which is not loaded in this process. "
        "Import tf_ipu_shim before running the graph.");
  }
  TF_RETURN_IF_ERROR(CheckMayCallPython());
  TF_RETURN_IF_ERROR(CheckPythonInterrupt());
  std::string bytes;
  TF_RETURN_IF_ERROR(WriteMessage(request, &bytes));
  LoweringCall call{runtime};
  const int32_t code = function(&call, bytes.data(), static_cast<int64_t>(bytes.size()));
  if (code == kKeyboardInterrupt) return RaiseInterruptAgain("The lowering of program " + request.name);
  if (code != 0) return Status(static_cast<absl::StatusCode>(code), call.answer);
  if (in_eager_context != nullptr) *in_eager_context = call.in_eager_context;
  return ReadMessage(call.answer, answer);
}

tensorflow::FunctionLibraryDefinition* LibraryOf(const tensorflow::FunctionLibraryRuntime* runtime) {
  return const_cast<tensorflow::FunctionLibraryDefinition*>(runtime->GetFunctionLibraryDefinition());
}

Status AddFunctions(tensorflow::FunctionLibraryRuntime* runtime, const tensorflow::FunctionDefLibrary& functions) {
  return AddAll(runtime, functions.function());
}

Status AddFunctions(tensorflow::FunctionLibraryRuntime* runtime,
                    const std::vector<tensorflow::FunctionDef>& functions) {
  return AddAll(runtime, functions);
}

}  // namespace tf_ipu_shim
