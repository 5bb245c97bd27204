// `tf.Assert` of uncompiled ops and of programs in mode `kernels`: fails with an InternalError, as on an IPU. For
// XLA, which compiles `Assert` to nothing, `compiler/passes/assertions` inserts a custom call, which `program_calls`
// implements.
#include <string>

#include "device/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/strings/strcat.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

class IpuAssertOp : public OpKernel {
 public:
  explicit IpuAssertOp(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("summarize", &summarize_));
    std::string described;  // a plain op has none
    if (TryGetNodeAttr(construction->def(), "_ipu_op", &described)) where_ = strings::StrCat("Op ", described, ".");
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
    context->CtxFailure(errors::Internal(text, where_));
  }
  bool IsExpensive() override { return false; }

 private:
  int64_t summarize_;
  std::string where_;
};

REGISTER_KERNEL_BUILDER(Name("Assert").Device(kDeviceType), IpuAssertOp);

}  // namespace
}  // namespace tf_ipu_shim
