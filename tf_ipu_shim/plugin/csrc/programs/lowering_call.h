// The call from C++ to Python that lowers a traced function for the IPU system as configured now.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "device/arena.h"
#include "protocol/program_messages.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// The state of one lowering call: the answer that Python fills in, and the runtime that it may query.
struct LoweringCall {
  tensorflow::FunctionLibraryRuntime* runtime;
  std::string answer;  // a serialised ProgramAnswer, or the message of the error
  // Whether `runtime` looks functions up in the library of the eager context, which outlives every kernel of its.
  bool in_eager_context = false;
};

// Returns 0, a TensorFlow status code with the message in `call->answer`, or `kKeyboardInterrupt`. `request` is a serialised
// ProgramRequest.
using LowerFunction = int32_t (*)(LoweringCall* call, const char* request, int64_t size);

void SetLowerFunction(LowerFunction function);

// The number of the current configuration, from 1. Programs lowered in an older epoch are lowered again at their next
// run, and devices are queried again at their next use.
extern std::atomic<int64_t> configuration_epoch;
inline int64_t CurrentEpoch(int ordinal) {
  // An embedded application keeps the configuration it was compiled with, whatever the process configures.
  constexpr int64_t kOfApplications = int64_t{1} << 40;
  return ordinal < kMaxConfiguredDevices ? configuration_epoch.load(std::memory_order_acquire) : kOfApplications;
}
void NewEpoch();

// Lowers `request`. The answer is not validated yet (see `programs/program_answer.h`). `in_eager_context`: see
// LoweringCall.
tensorflow::Status Lower(tensorflow::FunctionLibraryRuntime* runtime, const ProgramRequest& request,
                         ProgramAnswer* answer, bool* in_eager_context = nullptr);

// The library that `runtime` looks functions up in. It hands it out as const only because callers seldom extend it; the
// library locks itself.
tensorflow::FunctionLibraryDefinition* LibraryOf(const tensorflow::FunctionLibraryRuntime* runtime);

// Adds functions to that library. Those it has already are left as they are.
tensorflow::Status AddFunctions(tensorflow::FunctionLibraryRuntime* runtime,
                                const tensorflow::FunctionDefLibrary& functions);
tensorflow::Status AddFunctions(tensorflow::FunctionLibraryRuntime* runtime,
                                const std::vector<tensorflow::FunctionDef>& functions);

}  // namespace tf_ipu_shim
