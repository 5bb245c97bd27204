// Defines the C functions by which Python, through ctypes, sets up the plugin, answers its calls and queries devices.
// No exception and no abort crosses this boundary: errors are returned as strings.
#include <cstring>
#include <string>
#include <vector>

#include "device/counters.h"
#include "device/device.h"
#include "process/log_noise.h"
#include "programs/lowering_call.h"
#include "kernels/plain_ops.h"
#include "process/python_call.h"
#include "process/trace.h"
#include "tensorflow/c/eager/immediate_execution_context.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_private/function_bodies.h"

namespace tf_ipu_shim {

void RegisterKernels();
void RegisterJitCalls();

namespace {

// Text for Python lives until the next call on the same thread.
const char* Keep(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

const char* Keep(const tensorflow::Status& status) {
  return status.ok() ? nullptr : Keep(std::string(status.message()));
}

}  // namespace
}  // namespace tf_ipu_shim

using namespace tf_ipu_shim;  // NOLINT: the C interface of that namespace

extern "C" {

void ipu_register() {
  FilterLogNoise();
  RegisterKernels();
  RegisterJitCalls();
}

void ipu_set_device_count(int32_t count) { SetDeviceCount(count); }
void ipu_set_listed_device_count(int32_t count) { SetListedDeviceCount(count); }

// Adds missing devices to a running eager context. Returns null, or an error message.
const char* ipu_extend_context(void* context, int32_t present) {
  std::vector<std::unique_ptr<tensorflow::Device>> devices;
  tensorflow::Status status = CreateIpuDevices(tensorflow::SessionOptions(), "/job:localhost/replica:0/task:0",
                                               present, &devices);
  if (status.ok() && !devices.empty()) {
    status = tensorflow::unwrap(static_cast<TFE_Context*>(context))->AddDevices(std::move(devices));
  }
  return Keep(status);
}

void ipu_set_lower_function(LowerFunction function) { SetLowerFunction(function); }
void ipu_new_epoch() {
  NewEpoch();
  ResetTrace();
  for (int device = 0; device < kMaxDevices; ++device) {
    SetPlainOpEvents(device, std::nullopt);
    WatchPlainOps(device, kProfilePlainOps, false);
  }
}

// Profiles the uncompiled ops of a device until the next epoch.
void ipu_profile_plain_ops(int32_t device) {
  if (IsValidChip(device)) WatchPlainOps(device, kProfilePlainOps, true);
}

// The events of plain ops on a device until the next epoch: serialised ProgramEvents. Returns null, or what went wrong.
const char* ipu_set_plain_op_events(int32_t device, const char* bytes, int64_t size) {
  if (!IsValidChip(device)) return Keep(std::string("there is no such device"));
  ProgramEvents events;
  const tensorflow::Status status = ReadMessage(std::string(bytes, static_cast<size_t>(size)), &events);
  if (status.ok()) SetPlainOpEvents(device, std::move(events));
  return Keep(status);
}

void ipu_set_python_function(PythonFunction function) { SetPythonFunction(function); }
void ipu_python_answer(PythonCall* call, const char* bytes, int64_t size) {
  call->answer.assign(bytes, static_cast<size_t>(size));
}

void ipu_answer(LoweringCall* call, const char* bytes, int64_t size) {
  call->answer.assign(bytes, static_cast<size_t>(size));
}

// Passes the current eager context to a call.
void ipu_tell_context(LoweringCall* call, void* context) {
  tensorflow::ImmediateExecutionContext* const eager = tensorflow::unwrap(static_cast<TFE_Context*>(context));
  call->in_eager_context = eager->FuncLibDef() == LibraryOf(call->runtime);
}

// The arguments of a function that XLA must know at compile time, one flag an argument. `library` is a serialised
// FunctionDefLibrary that holds the function. Returns null, or what went wrong.
const char* ipu_constant_arguments(LoweringCall* call, const char* library, int64_t size, const char* function,
                                   uint8_t* flags, int32_t arguments) {
  tensorflow::FunctionDefLibrary functions;
  if (!functions.ParseFromArray(library, static_cast<int>(size))) return Keep(std::string("not a function library"));
  tensorflow::Status status = AddFunctions(call->runtime, functions);
  std::vector<int> constants, resources;
  if (status.ok()) {
    tensorflow::NameAttrList name;
    name.set_name(function);
    const tensorflow::FunctionBody* body = nullptr;
    status = tensorflow::GetBodyAndConstantsAndResources(call->runtime, name, &body, &constants, &resources);
  }
  if (!status.ok()) return Keep(status);
  std::memset(flags, 0, arguments);
  for (const int constant : constants) {
    if (constant < arguments) flags[constant] = 1;
  }
  return nullptr;
}

// Queries by numbers of devices and chips; -1 if such a number does not exist.
int64_t ipu_live_bytes(int32_t device, int32_t chip) {
  return IsValidChip(device, chip) ? ArenaOf(device, chip)->live_bytes() : -1;
}
int64_t ipu_peak_bytes(int32_t device, int32_t chip) {
  return IsValidChip(device, chip) ? ArenaOf(device, chip)->peak_bytes() : -1;
}
#define TF_IPU_COUNTER(name, counter)                                                   \
  int64_t ipu_##name(int32_t device) {                                                  \
    return IsValidChip(device) ? static_cast<int64_t>(CountersOf(device).counter) : -1; \
  }
TF_IPU_COUNTER(host_to_device_bytes, host_to_device.bytes)
TF_IPU_COUNTER(host_to_device_transfers, host_to_device.transfers)
TF_IPU_COUNTER(device_to_host_bytes, device_to_host.bytes)
TF_IPU_COUNTER(device_to_host_transfers, device_to_host.transfers)
TF_IPU_COUNTER(programs_lowered, programs_lowered)
TF_IPU_COUNTER(programs_compiled, programs_compiled)
TF_IPU_COUNTER(programs_run, programs_run)
#undef TF_IPU_COUNTER
int64_t ipu_exchange_bytes(int32_t device, int32_t source, int32_t destination) {
  if (!IsValidChip(device, source) || !IsValidChip(device, destination)) return -1;
  return CountersOf(device).exchange[source][destination].bytes;
}
int64_t ipu_exchange_transfers(int32_t device, int32_t source, int32_t destination) {
  if (!IsValidChip(device, source) || !IsValidChip(device, destination)) return -1;
  return CountersOf(device).exchange[source][destination].transfers;
}
void ipu_reset_counters(int32_t device) {
  if (IsValidChip(device)) ResetCounters(device);
}

}  // extern "C"
