// Launches of XLA programs that update variables where they are.
#ifndef TF_IPU_SHIM_LAUNCH_IN_PLACE_H_
#define TF_IPU_SHIM_LAUNCH_IN_PLACE_H_

#include <memory>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Whether a node is a launch of a program that cannot fail once it has begun to write.
bool UpdatesInPlace(const tensorflow::NodeDef& node);

// Its kernel.
tensorflow::Status MakeLaunchInPlace(tensorflow::OpKernelConstruction* construction, tensorflow::DeviceBase* device,
                                     const std::shared_ptr<const tensorflow::NodeProperties>& properties,
                                     std::unique_ptr<tensorflow::OpKernel>* kernel);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_LAUNCH_IN_PLACE_H_
