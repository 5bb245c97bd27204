// Launches of XLA programs: TensorFlow's kernel, with what IPUs need of it.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// The kernel of an `XlaLaunch`; its program updates variables in the memory that they have where it is marked as one that
// cannot fail once it has begun to write.
//
// `interruptible`: whether Ctrl-C ends the wait for XLA's compilation.
tensorflow::Status MakeLaunch(tensorflow::OpKernelConstruction* construction, tensorflow::DeviceBase* device,
                              const std::shared_ptr<const tensorflow::NodeProperties>& properties, bool interruptible,
                              std::unique_ptr<tensorflow::OpKernel>* kernel);

}  // namespace tf_ipu_shim
