// Rewrites the eager `Shape` op on an IPU to `IpuShape`, which TensorFlow does not refuse.
//
// `Shape`, run eagerly on an IPU, becomes `IpuShape`: the same kernel without full type information. TensorFlow wraps
// an eager op of such a device into a function with integers in device memory. That function refuses outputs declared
// as shape tensors ("int32 output with unexpected full type information with ints_on_device"). If the output were
// declared in host memory instead, graphs would be cut at every shape query, and loops could not be partitioned.
#include <memory>

#include "device/device.h"
#include "tensorflow/core/common_runtime/eager/eager_op_rewrite_registry.h"
#include "tensorflow/core/common_runtime/eager/eager_operation.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuShape")
    .Input("input: T")
    .Output("output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .SetShapeFn(shape_inference::UnknownShape);

class IpuShapeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({input.dims()}), &output));
    for (int axis = 0; axis < input.dims(); ++axis) {
      if (output->dtype() == DT_INT32) {
        output->flat<int32_t>()(axis) = static_cast<int32_t>(input.dim_size(axis));
      } else {
        output->flat<int64_t>()(axis) = input.dim_size(axis);
      }
    }
  }
  bool IsExpensive() override { return false; }
};

REGISTER_KERNEL_BUILDER(Name("IpuShape").Device(kDeviceType), IpuShapeOp);

class ShapeRewrite : public EagerOpRewrite {
 public:
  using EagerOpRewrite::EagerOpRewrite;
  Status Run(EagerOperation* op, std::unique_ptr<EagerOperation>* replacement) override {
    if (op->Name() != "Shape") return OkStatus();
    if (op->GetDeviceParsedName().type != kDeviceType) return OkStatus();
    auto made = std::make_unique<EagerOperation>(&op->EagerContext());
    TF_RETURN_IF_ERROR(made->Reset("IpuShape", op->DeviceName().c_str(), false, &op->Executor()));
    for (ImmediateExecutionTensorHandle* input : op->GetInputs()) TF_RETURN_IF_ERROR(made->AddInput(input));
    made->MutableAttrs()->CopyAttributes(op->Attrs());
    *replacement = std::move(made);
    return OkStatus();
  }
};

const eager_rewrite_registration::EagerRewriteRegistration shape_rewrite(
    EagerOpRewriteRegistry::PRE_EXECUTION, 31000, std::make_unique<ShapeRewrite>("ShapeRewrite", __FILE__, "Run"));

}  // namespace
}  // namespace tf_ipu_shim
