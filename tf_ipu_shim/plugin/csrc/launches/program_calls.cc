// The custom-call targets that XLA programs call on the host while they run (`compiler/ir/custom_calls`): assertions,
// whether an interruptible loop continues, and users' Poplar ops. The configuration is a string; an error ends the
// launch. Checked on 2.15.1 and 2.21.0.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "process/interrupts.h"
#include "user_ops/poplar_bridge.h"
#if __has_include("xla/service/custom_call_target_registry.h")
#include "xla/service/custom_call_status_internal.h"
#include "xla/service/custom_call_target_registry.h"
#else
#include "tensorflow/compiler/xla/service/custom_call_status_internal.h"
#include "tensorflow/compiler/xla/service/custom_call_target_registry.h"
#endif

namespace tf_ipu_shim {
namespace {

// `tf.Assert`: the operand is the condition, the configuration is the message.
void AssertCallback(void*, const void** operands, const char* text, size_t size, XlaCustomCallStatus_* status) {
  if (!*static_cast<const bool*>(operands[0])) status->message = std::string(text, size);
}

// The condition of a long loop. Where there is a Ctrl-C to answer the loop ends, and with it the launch.
void ContinueLoopCallback(void* result, const void** operands, const char*, size_t, XlaCustomCallStatus_* status) {
  bool* const goes_on = static_cast<bool*>(result);
  *goes_on = *static_cast<const bool*>(operands[0]);
  if (!*goes_on || !Interrupted()) return;
  *goes_on = false;
  status->message = std::string(InterruptedError("A loop").message());
}

// A user's op. The configuration is the numbers of its inputs and outputs, as decimal text with a blank after each,
// then its call. XLA passes one result as it is, and several as a list.
void UserOpCallback(void* result, const void** operands, const char* text, size_t size, XlaCustomCallStatus_* status) {
  std::string call(text, size);
  size_t length = 0;
  const size_t inputs = std::stoul(call, &length);
  call.erase(0, length + 1);
  const size_t outputs = std::stoul(call, &length);
  call.erase(0, length + 1);
  std::vector<void*> results(outputs, result);
  if (outputs > 1) std::memcpy(results.data(), result, outputs * sizeof(void*));
  const tensorflow::Status ran =
      RunUserOp(call, std::vector<const void*>(operands, operands + inputs), results);
  if (!ran.ok()) status->message = std::string(ran.message());
}

bool RegisterProgramCallbacks() {
  auto* const registry = xla::CustomCallTargetRegistry::Global();
  registry->Register("TfIpuShimAssert", reinterpret_cast<void*>(&AssertCallback), "Host");
  registry->Register("TfIpuShimGoesOn", reinterpret_cast<void*>(&ContinueLoopCallback), "Host");
  registry->Register("TfIpuShimUserOp", reinterpret_cast<void*>(&UserOpCallback), "Host");
  return true;
}

const bool in_program = RegisterProgramCallbacks();

}  // namespace
}  // namespace tf_ipu_shim
