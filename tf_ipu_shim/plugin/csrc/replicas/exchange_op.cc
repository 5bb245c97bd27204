// `IpuInterCopy`: copies a tensor from one IPU of a device to another and counts the bytes.
// The simulated chips share the host's memory, so the buffer is forwarded without a copy.
#include "device/counters.h"
#include "device/device.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuInterCopy")
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("source: int >= 0")
    .Attr("destination: int >= 0")
    .SetShapeFn(shape_inference::UnchangedShape);

class IpuInterCopyOp : public OpKernel {
 public:
  explicit IpuInterCopyOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("source", &source_));
    OP_REQUIRES_OK(context, context->GetAttr("destination", &destination_));
    OP_REQUIRES(context, source_ < kMaxChips && destination_ < kMaxChips,
                errors::InvalidArgument("Exchange between IPUs ", source_, " and ", destination_, ": a device has at most ",
                                        kMaxChips));
  }
  void Compute(OpKernelContext* context) override {
    IpuDevice* device = AsIpuDevice(context->function_library()->device());
    OP_REQUIRES(context, device != nullptr, errors::FailedPrecondition(name(), " is not placed on an IPU"));
    CountersOf(device->ordinal()).exchange[source_][destination_].Add(context->input(0).TotalBytes());
    context->set_output(0, context->input(0));
  }
  bool IsExpensive() override { return false; }

 private:
  int64_t source_, destination_;
};

REGISTER_KERNEL_BUILDER(Name("IpuInterCopy").Device(kDeviceType), IpuInterCopyOp);

}  // namespace
}  // namespace tf_ipu_shim
