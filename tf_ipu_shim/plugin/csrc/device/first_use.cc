// Asks Python what a device may do at its first use, and caches the answer until the next configuration.
#include "device/first_use.h"

#include <cstring>
#include <set>
#include <string>

#include "protocol/driver_messages.h"
#include "kernels/one_dnn.h"
#include "process/python_call.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

constexpr int kUseBits = 2;

bool CachedDeviceUse(int ordinal, int64_t epoch, Use* use) {
  const int64_t known = known_uses[ordinal].load(std::memory_order_acquire);
  if (known >> kUseBits != epoch) return false;
  *use = static_cast<Use>(known & 3);
  return true;
}

// Datasets and iterators made under a strategy's scope: they are the host's, whatever device they are placed on.
bool IsDatasetOp(const tensorflow::OpKernel& kernel) {
  const std::string& op = kernel.def().op();
  return op.find("Dataset") != std::string::npos || op.find("Iterator") != std::string::npos;
}

}  // namespace

std::atomic<int64_t> known_uses[kMaxDevices] = {};  // of epoch 0, which never is

tensorflow::Status FindDeviceUse(int ordinal, bool attach, Use* use) {
  if (!HasPythonFunction()) {  // the plugin alone, without configurations
    *use = Use::kRun;
    return tensorflow::OkStatus();
  }
  // A lock here would deadlock. TensorFlow runs some eager ops while it holds Python's lock, and such a thread would
  // wait for one that waits for Python. Threads that ask at the same time get the same answer; Python attaches once.
  for (;;) {
    // An epoch starts when the default device is created, or when another thread configures at the same time. Answers
    // of an older epoch are requested again.
    const int64_t epoch = CurrentEpoch(ordinal);
    if (CachedDeviceUse(ordinal, epoch, use) && !(attach && *use == Use::kUnattached)) return tensorflow::OkStatus();
    DeviceUse answer;
    TF_RETURN_IF_ERROR(CallPython<AttachCall>({ordinal, attach}, &answer));
    if (CurrentEpoch(ordinal) != epoch) continue;
    known_uses[ordinal].store(epoch << kUseBits | static_cast<int64_t>(answer.use), std::memory_order_release);
  }
}

bool ReturnsZeros(int ordinal) {
  Use use = Use::kRun;
  return CachedDeviceUse(ordinal, CurrentEpoch(ordinal), &use) && use == Use::kZeros;
}

bool RunsWithoutEngine(const tensorflow::OpKernel& kernel) {
  static const auto* const ops = new std::set<std::string>{
      "Const", "_EagerConst", "Placeholder", "PlaceholderWithDefault", "NoOp", "Identity", "IdentityN", "_Arg", "_Retval", "_DeviceArg", "_DeviceRetval",
      "_Send", "_Recv", "_HostSend", "_HostRecv", "VarHandleOp", "_VarHandlesOp", "ReadVariableOp",
      "AssignVariableOp", "VarIsInitializedOp", "VariableShape", "DestroyResourceOp", "Switch", "RefSwitch", "Merge",
      "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger", "PartitionedCall", "StatefulPartitionedCall",
      "If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "IpuProgram", "IpuApplicationCompile",
      // Inside a program, which has asked already.
      "XlaLaunch", "IpuInterCopy"};
  return ops->count(kernel.def().op()) > 0 || IsDatasetOp(kernel);
}

tensorflow::Status CompileOnlyError(const tensorflow::OpKernel& kernel) {
  return tensorflow::errors::InvalidArgument(
      "Trying to run an executable on a device that was configured for compilation only. Op ", kernel.name(), " (",
      WithoutOneDnnPrefix(absl::string_view(kernel.def().op())),
      ") cannot run under device_connection.type = DeviceConnectionType.NEVER; use ALWAYS or ON_DEMAND to run it.");
}

tensorflow::Status ZeroOutputs(tensorflow::OpKernelContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    tensorflow::Tensor* output = context->mutable_output(i);
    if (output == nullptr || !tensorflow::DataTypeCanUseMemcpy(output->dtype())) continue;
    // A result may share its memory with an input, which keeps its value.
    tensorflow::Tensor zeros;
    TF_RETURN_IF_ERROR(context->allocate_temp(output->dtype(), output->shape(), &zeros));
    if (zeros.TotalBytes() > 0) std::memset(zeros.data(), 0, zeros.TotalBytes());
    *output = zeros;
  }
  return tensorflow::OkStatus();
}

}  // namespace tf_ipu_shim
