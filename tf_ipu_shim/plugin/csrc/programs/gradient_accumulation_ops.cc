// Ops that accumulate gradients over the iterations of a loop. The compiler replaces them by variables of the loop;
// anywhere else they fail, as there is no loop to accumulate over.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is TensorFlow ops

REGISTER_OP("IpuStatefulGradientAccumulate")
    .Input("input: T")
    .Output("output: T")
    .Attr("shape: shape")
    .Attr("num_mini_batches: int >= 1")
    .Attr("verify_usage: bool = true")
    .Attr("T: {float16, bfloat16, float32, int32}")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnchangedShape);

REGISTER_OP("IpuStatefulGradientAccumulateWithMomentum")
    .Input("accum: resource")
    .Input("grad: T")
    .Output("output: T")
    .Attr("shape: shape")
    .Attr("momentum: float")
    .Attr("num_mini_batches: int >= 1")
    .Attr("T: {float16, bfloat16, float32}")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      context->set_output(0, context->input(1));
      return OkStatus();
    });

class RefusedOutsideProgramsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    context->CtxFailure(errors::FailedPrecondition("The ", name(), " ", type_string(), " op is in no program: it sums ",
                                                   "over the iterations of a loop that an IPU runs. Use it in the body ",
                                                   "of ipu.loops.repeat."));
  }
};

REGISTER_KERNEL_BUILDER(Name("IpuStatefulGradientAccumulate").Device(DEVICE_CPU), RefusedOutsideProgramsOp);
REGISTER_KERNEL_BUILDER(Name("IpuStatefulGradientAccumulateWithMomentum").Device(DEVICE_CPU), RefusedOutsideProgramsOp);

}  // namespace
}  // namespace tf_ipu_shim
