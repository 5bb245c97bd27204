// `tf.Assert` stops a program with an InternalError, as on an IPU. A plain `Assert`, and one of a program that runs by
// kernels, is the op below. XLA compiles `Assert` to nothing: `lowering/assertions` puts a custom call in its place, and
// this is what it calls.
#include <cstddef>
#include <string>

#include "device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/strings/strcat.h"
#if __has_include("xla/service/custom_call_target_registry.h")
#include "xla/service/custom_call_status_internal.h"
#include "xla/service/custom_call_target_registry.h"
#else
#include "tensorflow/compiler/xla/service/custom_call_status_internal.h"
#include "tensorflow/compiler/xla/service/custom_call_target_registry.h"
#endif

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

class IpuAssertOp : public OpKernel {
 public:
  explicit IpuAssertOp(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("summarize", &summarize_));
  }
  void Compute(OpKernelContext* context) override {
    const Tensor& condition = context->input(0);
    OP_REQUIRES(context, TensorShapeUtils::IsScalar(condition.shape()),
                errors::InvalidArgument("The condition of an Assert is to be a scalar, and has the shape ",
                                        condition.shape().DebugString(), ". Reduce it with tf.reduce_all."));
    if (condition.scalar<bool>()()) return;
    std::string text = "assertion failed: ";
    for (int index = 1; index < context->num_inputs(); ++index) {
      strings::StrAppend(&text, "[", context->input(index).SummarizeValue(summarize_), "] ");
    }
    context->CtxFailure(errors::Internal(text));
  }
  bool IsExpensive() override { return false; }

 private:
  int64_t summarize_;
};

REGISTER_KERNEL_BUILDER(Name("Assert").Device(kDeviceType), IpuAssertOp);

// What XLA calls on the host: operand 0 is the condition, the configuration is the text. Checked on 2.15.1 and 2.21.0.
void CheckInProgram(void*, const void** operands, const char* text, size_t size, XlaCustomCallStatus_* status) {
  if (!*static_cast<const bool*>(operands[0])) status->message = std::string(text, size);
}

bool RegisterInProgram() {
  xla::CustomCallTargetRegistry::Global()->Register("TfIpuShimAssert", reinterpret_cast<void*>(&CheckInProgram),
                                                    "Host");
  return true;
}

const bool assert_target = RegisterInProgram();

}  // namespace
}  // namespace tf_ipu_shim
