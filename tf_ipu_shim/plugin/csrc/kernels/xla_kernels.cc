#include "kernels/xla_kernels.h"

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {

// Exported by TensorFlow, whose own header for it needs headers that the wheel leaves out: the one static function of
// the class that is called here. Checked on 2.15.1 and 2.21.0.
class XlaOpRegistry {
 public:
  static void RegisterCompilationKernels();
};

}  // namespace tensorflow

namespace tf_ipu_shim {

bool XlaHasKernel(const tensorflow::NodeDef& node) {
  tensorflow::XlaOpRegistry::RegisterCompilationKernels();
  return tensorflow::FindKernelDef(tensorflow::DeviceType("XLA_CPU_JIT"), node, nullptr, nullptr).ok();
}

}  // namespace tf_ipu_shim
