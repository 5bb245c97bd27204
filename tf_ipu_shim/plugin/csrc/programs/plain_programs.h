// Profiles the uncompiled ops of a session's step as if they were one program. On a real system a session step's ops on
// a device, outside compiled programs, are one program. Here TensorFlow's kernels run them op by op. For a profile,
// Python receives them as one program when a step has run and the shapes are known.
#pragma once

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Records the inputs of an uncompiled op before it runs, for the profile of its step. Called if `kProfilePlainOps` is
// set.
void RecordPlainOp(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context, int ordinal);

}  // namespace tf_ipu_shim
