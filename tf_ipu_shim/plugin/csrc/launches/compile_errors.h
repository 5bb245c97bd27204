// XLA's errors: Python knows the script's line of an op, and what to do instead.
#pragma once

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Where a program failed because XLA could not compile a launch of its, the error becomes what the script is told.
void ExplainCompileError(tensorflow::OpKernelContext* context);

}  // namespace tf_ipu_shim
