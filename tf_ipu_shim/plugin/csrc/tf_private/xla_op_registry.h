// Declares TensorFlow's function that registers the kernels that convert ops to XLA.
#pragma once

namespace tensorflow {

// The one static function of the class that is called here. TensorFlow exports it, but the header that declares it
// includes headers that the wheel leaves out. Checked on 2.15.1 and 2.21.0.
class XlaOpRegistry {
 public:
  static void RegisterCompilationKernels();
};

}  // namespace tensorflow
