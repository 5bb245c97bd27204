// Looks an op up in XLA's kernel registry.
#include "kernels/xla_kernels.h"

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_private/xla_op_registry.h"

namespace tf_ipu_shim {

bool XlaHasKernel(const tensorflow::NodeDef& node) {
  // A user's Poplar op is a custom call there.
  if (node.op() == "IpuUserOp" || node.op() == "IpuStatelessUserOp") return true;
  tensorflow::XlaOpRegistry::RegisterCompilationKernels();
  return tensorflow::FindKernelDef(tensorflow::DeviceType("XLA_CPU_JIT"), node, nullptr, nullptr).ok();
}

}  // namespace tf_ipu_shim
