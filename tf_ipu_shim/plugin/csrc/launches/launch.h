// Creates the kernel that runs an XLA program (`XlaLaunch`) on an IPU.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Creates the kernel of an `XlaLaunch`. Its program updates variables in place if an attribute says that it cannot fail
// once it has begun to write.
//
// `interruptible`: whether Ctrl-C ends the wait for XLA's compilation.
tensorflow::Status MakeLaunch(tensorflow::OpKernelConstruction* construction, tensorflow::DeviceBase* device,
                              const std::shared_ptr<const tensorflow::NodeProperties>& properties, bool interruptible,
                              std::unique_ptr<tensorflow::OpKernel>* kernel);

}  // namespace tf_ipu_shim
