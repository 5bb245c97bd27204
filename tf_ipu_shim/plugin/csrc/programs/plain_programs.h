// Profiles of plain ops. On a real system what a step of a session runs on a device, outside compiled programs, is one
// program. Here TensorFlow's kernels run it op by op; where a profile is wanted, it is told to Python as one when a step
// has run, as the shapes are known then.
#pragma once

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Before a plain op runs: what it is given is part of what Python is told when the step has ended. To be called where
// `kProfilePlainOps` is set.
void SeePlainOp(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context, int ordinal);

}  // namespace tf_ipu_shim
