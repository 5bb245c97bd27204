// Calls the registered Python function with a serialized request and returns its answer.
#include "process/python_call.h"

#include <atomic>

#include "process/asynchronous.h"
#include "process/interrupts.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

std::atomic<PythonFunction> python_function{nullptr};

}  // namespace

void SetPythonFunction(PythonFunction function) { python_function = function; }
bool HasPythonFunction() { return python_function.load(std::memory_order_relaxed) != nullptr; }

tensorflow::Status CallPythonWithBytes(const char* name, const std::string& request, std::string* answer) {
  const PythonFunction function = python_function;
  if (function == nullptr) {
    return tensorflow::errors::FailedPrecondition(
        "The Python package tf_ipu_shim is not loaded in this process. Import tf_ipu_shim.ipu before running the op.");
  }
  TF_RETURN_IF_ERROR(CheckMayCallPython());
  TF_RETURN_IF_ERROR(CheckPythonInterrupt());
  PythonCall call;
  const int32_t code = function(&call, name, request.data(), static_cast<int64_t>(request.size()));
  if (code == kKeyboardInterrupt) return RaiseInterruptAgain("A call of the IPU driver");
  if (code != 0) return tensorflow::Status(static_cast<absl::StatusCode>(code), call.answer);
  *answer = std::move(call.answer);
  return tensorflow::OkStatus();
}

}  // namespace tf_ipu_shim
