// `IpuHandle`: passes on a resource handle, so that a loop on an IPU can use an iterator on the host (see
// `compiler/checks/host_ops.py`). Consumers of the handle are placed with this op, not with the resource.
#include "tensorflow/core/common_runtime/input_colocation_exemption_registry.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuHandle").Input("input: resource").Output("output: resource").SetShapeFn(shape_inference::UnchangedShape);
// Users of the handle are placed where this op is, not where the resource is.
REGISTER_INPUT_COLOCATION_EXEMPTION("IpuHandle");

class HandleOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { context->set_output(0, context->input(0)); }
  bool IsExpensive() override { return false; }
};

REGISTER_KERNEL_BUILDER(Name("IpuHandle").Device("CPU"), HandleOp);

}  // namespace
}  // namespace tf_ipu_shim
