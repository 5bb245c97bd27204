// The kernels by which TensorFlow converts ops to XLA.
#pragma once

namespace tensorflow {

// Exported by TensorFlow, whose own header for it needs headers that the wheel leaves out: the one static function of
// the class that is called here. Checked on 2.15.1 and 2.21.0.
class XlaOpRegistry {
 public:
  static void RegisterCompilationKernels();
};

}  // namespace tensorflow
